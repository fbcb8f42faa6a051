//! DLPack's structures, version 1.0, and the capsules that carry them.
//!
//! The layouts are those of `dlpack.h`. A consumer takes a capsule by renaming it and then calls the deleter when it no
//! longer needs the memory, on any thread and without the interpreter's lock; a capsule that nobody took does so itself.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use forebay_format::image::Dtype;
use forebay_units::Element;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::tensor::{Memory, View};

pub(crate) const VERSION: (u32, u32) = (1, 0);
/// Memory of the host.
pub(crate) const CPU: (i32, i32) = (1, 0);

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What a managed tensor points to.
struct Context {
    _memory: Arc<Memory>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The type of an image's values.
pub(crate) fn of_image(dtype: Dtype) -> Element {
    match dtype {
        Dtype::U8 => Element::U8,
        Dtype::F16 => Element::F16,
        Dtype::Bf16 => Element::Bf16,
        Dtype::F32 => Element::F32,
    }
}

/// DLPack's code: 0 signed, 1 unsigned, 2 float, 4 brain float.
fn code_of(element: Element) -> u8 {
    match element {
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => 0,
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => 1,
        Element::F16 | Element::F32 | Element::F64 => 2,
        Element::Bf16 => 4,
    }
}

/// The strides of an array without gaps, in values.
pub(crate) fn strides_of(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    strides
}

/// A capsule that keeps the memory alive.
pub(crate) fn capsule(py: Python<'_>, view: &View, is_versioned: bool) -> PyResult<Py<PyAny>> {
    let View { memory, offset, shape, strides, element } = view;
    let mut context = Box::new(Context { _memory: Arc::clone(memory), shape: shape.clone(), strides: strides.clone() });
    let tensor = DlTensor {
        data: memory.address().cast(),
        device_type: CPU.0,
        device_id: CPU.1,
        ndim: shape.len() as i32,
        code: code_of(*element),
        bits: (element.bytes() * 8) as u8,
        lanes: 1,
        // The vectors' memory stays where it is when the box moves.
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: *offset as u64,
    };
    let context = Box::into_raw(context).cast();
    let (pointer, name, destructor): (*mut c_void, &CStr, ffi::PyCapsule_Destructor) = if is_versioned {
        let (major, minor) = VERSION;
        let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut ManagedVersioned));
        let managed = Box::new(ManagedVersioned { major, minor, context, deleter, flags: 0, tensor });
        (Box::into_raw(managed).cast(), NAME_VERSIONED, destroy_versioned)
    } else {
        let deleter = Some(delete as unsafe extern "C" fn(*mut Managed));
        (Box::into_raw(Box::new(Managed { tensor, context, deleter })).cast(), NAME, destroy)
    };
    // SAFETY: the pointer is not null, the name is static, and the destructor takes capsules of this name.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor))) }
        .map(Bound::unbind)
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were made in `capsule`, and the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes a capsule that is being destroyed; with this name, no consumer took what is in it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `destroy`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}
