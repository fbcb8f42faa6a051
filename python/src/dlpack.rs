//! DLPack's structures, version 1.0, and the capsules that carry them.
//!
//! The layouts are those of `dlpack.h`. A consumer takes a capsule by renaming it and then calls the deleter when it no
//! longer needs the memory, on any thread and without the interpreter's lock; a capsule that nobody took does so itself.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use forebay_format::image::Dtype;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::tensor::Memory;

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

/// The type of a tensor's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Image(Dtype),
    I64,
}

impl Element {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Image(Dtype::U8) => "uint8",
            Self::Image(Dtype::F16) => "float16",
            Self::Image(Dtype::Bf16) => "bfloat16",
            Self::Image(Dtype::F32) => "float32",
            Self::I64 => "int64",
        }
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Image(dtype) => dtype.bytes(),
            Self::I64 => 8,
        }
    }

    /// DLPack's code: 0 signed, 1 unsigned, 2 float, 4 brain float.
    fn code(self) -> u8 {
        match self {
            Self::I64 => 0,
            Self::Image(Dtype::U8) => 1,
            Self::Image(Dtype::F16 | Dtype::F32) => 2,
            Self::Image(Dtype::Bf16) => 4,
        }
    }
}

/// A capsule that keeps the memory alive.
pub(crate) fn capsule(
    py: Python<'_>,
    memory: &Arc<Memory>,
    shape: &[i64],
    element: Element,
    is_versioned: bool,
) -> PyResult<Py<PyAny>> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    let mut context = Box::new(Context { _memory: Arc::clone(memory), shape: shape.to_vec(), strides });
    let tensor = DlTensor {
        data: memory.address().cast(),
        device_type: CPU.0,
        device_id: CPU.1,
        ndim: shape.len() as i32,
        code: element.code(),
        bits: (element.bytes() * 8) as u8,
        lanes: 1,
        // The vectors' memory stays where it is when the box moves.
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
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
