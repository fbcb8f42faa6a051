//! `/proc/vmstat`: traffic between memory and disks.

use crate::sheet::Sheet;
use crate::source::{field, growth, ratio};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paging {
    pub paged_in_bytes: Option<u64>,
    pub paged_out_bytes: Option<u64>,
    pub swapped_in_pages: Option<u64>,
    pub swapped_out_pages: Option<u64>,
    /// Page faults that had to wait for I/O.
    pub major_faults: Option<u64>,
    /// Pages of files that were read again after eviction from the page cache.
    pub file_refaults: Option<u64>,
}

/// Reads `/proc/vmstat`; `None` if it contains none of these quantities.
pub fn parse(text: &str) -> Option<Paging> {
    let bytes = |name| field(text, name).map(|kib| kib * 1024);
    let paging = Paging {
        paged_in_bytes: bytes("pgpgin"),
        paged_out_bytes: bytes("pgpgout"),
        swapped_in_pages: field(text, "pswpin"),
        swapped_out_pages: field(text, "pswpout"),
        major_faults: field(text, "pgmajfault"),
        // Before Linux 5.9 a single counter covered files and anonymous memory, and only files could refault.
        file_refaults: field(text, "workingset_refault_file").or_else(|| field(text, "workingset_refault")),
    };
    (paging != Paging::default()).then_some(paging)
}

pub(crate) fn put(sheet: &mut Sheet, before: &Paging, after: &Paging, span_s: f64, page_bytes: f64) {
    let rate = |before: Option<u64>, after: Option<u64>| ratio(growth(before?, after?), Some(span_s));
    let pages = |before, after| rate(before, after).map(|pages| pages * page_bytes);
    sheet.put("paging", "in_bytes_per_s", rate(before.paged_in_bytes, after.paged_in_bytes));
    sheet.put("paging", "out_bytes_per_s", rate(before.paged_out_bytes, after.paged_out_bytes));
    sheet.put("paging", "swap_in_bytes_per_s", pages(before.swapped_in_pages, after.swapped_in_pages));
    sheet.put("paging", "swap_out_bytes_per_s", pages(before.swapped_out_pages, after.swapped_out_pages));
    sheet.put("paging", "major_faults_per_s", rate(before.major_faults, after.major_faults));
    sheet.put("paging", "file_refaults_per_s", rate(before.file_refaults, after.file_refaults));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "nr_free_pages 5\nworkingset_refault_anon 1\nworkingset_refault_file 20\npgpgin 100\npgpgout 50\n\
        pswpin 3\npswpout 4\npgfault 900\npgmajfault 7\n";

    #[test]
    fn rates_are_over_the_true_time() {
        let before = parse(TEXT).unwrap();
        let text =
            TEXT.replace("pgpgin 100", "pgpgin 104").replace("pswpout 4", "pswpout 14").replace("_file 20", "_file 21");
        let after = parse(&text).unwrap();
        let mut sheet = Sheet::default();
        put(&mut sheet, &before, &after, 0.5, 4096.0);
        let expected = [8192.0, 0.0, 0.0, 81_920.0, 0.0, 2.0].map(Some);
        assert_eq!(sheet.values(), expected);
    }

    #[test]
    fn older_and_smaller_kernels_lack_some() {
        let paging = parse("workingset_refault 8\npgmajfault 7\n").unwrap();
        assert_eq!(paging, Paging { file_refaults: Some(8), major_faults: Some(7), ..Paging::default() });
        assert_eq!(parse("nr_free_pages 5\n"), None);
        let mut sheet = Sheet::default();
        put(&mut sheet, &paging, &paging, 1.0, 4096.0);
        assert_eq!(sheet.values(), [None, None, None, None, Some(0.0), Some(0.0)]);
    }
}
