//! What a recording calls the processor, from what the kernel tells of it. In one place, because the
//! peaks of a machine are found by the same name.

#![forbid(unsafe_code)]

/// The processor as its vendor names it, from the text of `/proc/cpuinfo`. That of x86-64 has the name;
/// that of aarch64 has numbers, for each core. Empty where there is neither.
pub fn of_cpuinfo(text: &str) -> String {
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    let fields = |name: &'static str| {
        text.lines().filter(move |line| line.starts_with(name)).filter_map(value)
    };
    if let Some(name) = fields("model name").next() {
        return name;
    }
    let number = |text: String| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (makers, parts) = (fields("CPU implementer"), fields("CPU part"));
    let mut names: Vec<String> = Vec::new();
    for (maker, part) in makers.zip(parts) {
        let (Some(maker), Some(part)) = (number(maker), number(part)) else { continue };
        let name = core_name(maker, part);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Phones and small computers have cores of several kinds.
    names.join(" + ")
}

fn core_name(maker: u32, part: u32) -> String {
    let known = CORES.iter().find(|(a, b, _)| (*a, *b) == (maker, part));
    match (known, MAKERS.iter().find(|(number, _)| *number == maker)) {
        (Some((_, _, name)), _) => (*name).to_owned(),
        (None, Some((_, maker))) => format!("{maker} processor {part:#x}"),
        (None, None) => format!("Arm processor {part:#x} of maker {maker:#x}"),
    }
}

const MAKERS: [(u32, &str); 8] = [
    (0x41, "Arm"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0x6d, "Microsoft"),
    (0xc0, "Ampere"),
];

/// Maker, part, and what they are called.
const CORES: [(u32, u32, &str); 32] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x48, 0xd01, "HiSilicon Kunpeng-920"),
    (0x51, 0x001, "Qualcomm Oryon"),
    (0x6d, 0xd49, "Microsoft Azure Cobalt 100"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(cores: &[(&str, &str)]) -> String {
        let core = |(maker, part): &(&str, &str)| {
            format!("processor\t: 0\nCPU implementer\t: {maker}\nCPU part\t: {part}\n\n")
        };
        cores.iter().map(core).collect()
    }

    #[test]
    fn names_are_taken_and_numbers_are_known() {
        let named = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\n";
        assert_eq!(of_cpuinfo(named), "A Processor @ 2 GHz");
        assert_eq!(of_cpuinfo(&arm(&[("0x41", "0xd0c"); 4])), "Neoverse-N1");
        let mixed = arm(&[("0x41", "0xd05"), ("0x41", "0xd05"), ("0x41", "0xd0b")]);
        assert_eq!(of_cpuinfo(&mixed), "Cortex-A55 + Cortex-A76");
        assert_eq!(of_cpuinfo(&arm(&[("0x61", "0x023")])), "Apple processor 0x23");
        assert_eq!(of_cpuinfo(&arm(&[("0x7", "0x1")])), "Arm processor 0x1 of maker 0x7");
        assert_eq!(of_cpuinfo(&arm(&[("x", "0x1")])), "");
        assert_eq!(of_cpuinfo(""), "");
    }
}
