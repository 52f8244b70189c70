//! How far the machine's time of day can be off, as its kernel says. Whoever sets the clock by a server
//! tells the kernel how well that is known; from then on the kernel lets the bound grow, until it is told
//! again.

/// Microseconds, or `free` where nobody sets the clock right; `None` where the kernel does not tell.
pub(super) fn text() -> Option<String> {
    // SAFETY: the structure consists of integers, all of which may be 0; no bit of `modes` is set, so
    // the kernel only fills it.
    let (state, said) = unsafe {
        let mut said: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut said), said)
    };
    (state >= 0).then(|| words(said.status & libc::STA_UNSYNC == 0, said.maxerror))
}

fn words(is_set: bool, most_us: libc::c_long) -> String {
    match u64::try_from(most_us) {
        Ok(most_us) if is_set => most_us.to_string(),
        _ => "free".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says() {
        assert_eq!(words(true, 12_500), "12500");
        assert_eq!(words(false, 16_000_000), "free");
        let here = text().expect("the kernel answers everybody");
        assert!(here == "free" || here.parse::<u64>().is_ok(), "{here}");
    }
}
