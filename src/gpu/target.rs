//! What PTX is written for, for which cards, and which drivers take it (PTX ISA, ".target" and "Release Notes").

/// What PTX is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name after `.target`.
    pub name: &'static str,
    /// The same as NVRTC has it, where PTX is wanted and not machine code.
    pub compute: &'static str,
    /// Compute capability, ten times the major number plus the minor one.
    pub capability: u32,
    /// Which instructions may be used.
    pub reach: Reach,
    /// The PTX version that modules for it have at least.
    pub version: Version,
    /// Cards that it is chosen for.
    pub chips: &'static str,
}

/// A PTX ISA version, major and minor.
pub type Version = (u32, u32);

/// On which chips a target runs, and with that which instructions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// On all chips from one on.
    Onward,
    /// On those of a family, with the instructions that only the family has.
    Family,
    /// On one alone, with the instructions that only this one has, too.
    Chip,
}

/// Every target, oldest first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sm_75",
        compute: "compute_75",
        capability: 75,
        reach: Reach::Onward,
        version: (7, 0),
        chips: "Turing",
    },
    Target {
        name: "sm_80",
        compute: "compute_80",
        capability: 80,
        reach: Reach::Onward,
        version: (7, 0),
        chips: "Ampere: A100, RTX 30",
    },
    Target {
        name: "sm_89",
        compute: "compute_89",
        capability: 89,
        reach: Reach::Onward,
        version: (8, 1),
        chips: "Ada: L4, L40S, RTX 40",
    },
    Target {
        name: "sm_90",
        compute: "compute_90",
        capability: 90,
        reach: Reach::Onward,
        version: (7, 8),
        chips: "Hopper: H100, H200",
    },
    Target {
        name: "sm_100f",
        compute: "compute_100f",
        capability: 100,
        reach: Reach::Family,
        version: (8, 8),
        chips: "Blackwell: others of 10.x",
    },
    Target {
        name: "sm_100a",
        compute: "compute_100a",
        capability: 100,
        reach: Reach::Chip,
        version: (8, 6),
        chips: "Blackwell: B200",
    },
    Target {
        name: "sm_103a",
        compute: "compute_103a",
        capability: 103,
        reach: Reach::Chip,
        version: (8, 8),
        chips: "Blackwell: B300",
    },
    Target {
        name: "sm_120f",
        compute: "compute_120f",
        capability: 120,
        reach: Reach::Family,
        version: (8, 8),
        chips: "Blackwell: RTX 50, RTX PRO",
    },
];

impl Target {
    /// The target for a card; `None` for cards older than all of them. One that is for its chip alone comes first,
    /// then that of its family; a chip of a family that has no row gets the newest plain target.
    pub fn of_capability(major: u32, minor: u32) -> Option<&'static Self> {
        let capability = 10 * major + minor;
        TARGETS.iter().rev().find(|target| match target.reach {
            Reach::Onward => target.capability <= capability,
            Reach::Family => target.capability / 10 == major && target.capability <= capability,
            Reach::Chip => target.capability == capability,
        })
    }
}

/// The CUDA version of the first driver that takes PTX of this version (PTX ISA, "Release Notes").
pub fn least_driver((major, minor): Version) -> i32 {
    let minor = if major == 8 && minor > 5 { minor + 1 } else { minor };
    (1000 * (major + 4) + 10 * minor) as i32
}

/// The newest PTX version that a driver takes, by the CUDA version that it supports.
pub fn newest_ptx(driver: i32) -> Version {
    let (major, minor) = (driver as u32 / 1000, driver as u32 % 1000 / 10);
    (major - 4, if major == 12 && minor > 5 { minor - 1 } else { minor })
}
