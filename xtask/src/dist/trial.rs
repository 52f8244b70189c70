//! placeholder
use super::Packages;
use super::built::Built;

pub(super) fn try_packages(_: &Packages, _: &Built) -> anyhow::Result<()> {
    Ok(())
}
