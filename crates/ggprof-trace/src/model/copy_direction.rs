//! Between which memory a copy goes.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CopyDirection {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    HostToHost,
    /// The recording has a name for it that we do not know.
    Unknown,
}

impl CopyDirection {
    const KNOWN: [Self; 4] =
        [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice, Self::HostToHost];

    /// The op of such copies, as ggml's profiler names it.
    pub fn op_name(self) -> &'static str {
        match self {
            Self::HostToDevice => "copy_H2D",
            Self::DeviceToHost => "copy_D2H",
            Self::DeviceToDevice => "copy_D2D",
            Self::HostToHost => "copy_H2H",
            Self::Unknown => "copy_",
        }
    }

    /// `H2D` and the like; nothing where it is not known.
    pub fn name(self) -> &'static str {
        &self.op_name()["copy_".len()..]
    }

    /// For readers of formats that tell by the name alone what is a copy; `None` for other ops.
    pub fn of_op_name(op: &str) -> Option<Self> {
        let known = Self::KNOWN.into_iter().find(|direction| direction.op_name() == op);
        known.or(op.starts_with("copy_").then_some(Self::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::CopyDirection;

    #[test]
    fn names_of_copies_and_of_other_ops() {
        for direction in CopyDirection::KNOWN {
            assert_eq!(CopyDirection::of_op_name(direction.op_name()), Some(direction));
        }
        assert_eq!(CopyDirection::of_op_name("copy_X2Y"), Some(CopyDirection::Unknown));
        assert_eq!(CopyDirection::of_op_name("CPY"), None);
        assert_eq!(
            (CopyDirection::HostToDevice.name(), CopyDirection::Unknown.name()),
            ("H2D", "")
        );
    }
}
