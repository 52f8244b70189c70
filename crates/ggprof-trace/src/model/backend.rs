//! Compute backends as ggml's scheduler numbers them.

use super::process::ProcessIndex;
use ggprof_ggml::{DeviceInterface, device_interface};
use serde::{Deserialize, Serialize};

/// Position in [`Trace::backends`](crate::Trace::backends); not the scheduler's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackendIndex(pub u16);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// The number the recording uses; normally the scheduler's priority, but files hold any number.
    pub id: i32,
    pub name: String,
    pub device: String,
    /// What the device is called by its maker ("NVIDIA H200"); empty where it is not known.
    pub description: String,
    pub device_type: DeviceType,
    /// The file of the library that computes for it; empty where it is not known. It stays out of
    /// other formats, because a path may name a person.
    pub library_path: String,
    /// Whose it is, where the trace was made of several recordings.
    pub process: Option<ProcessIndex>,
    /// What people call it there; otherwise empty.
    pub called: String,
}

impl Backend {
    /// A backend that records refer to although no table describes it.
    pub fn unnamed(id: i32) -> Self {
        Self {
            id,
            name: format!("backend {id}"),
            device: String::new(),
            description: String::new(),
            device_type: DeviceType::Unknown,
            library_path: String::new(),
            process: None,
            called: String::new(),
        }
    }

    /// The server that it leaves its work to; `None` if it computes itself.
    pub fn endpoint(&self) -> Option<&str> {
        ggprof_ggml::endpoint(&self.name)
    }

    /// Whether it is ggml's for NVIDIA's devices.
    pub fn is_cuda(&self) -> bool {
        matches!(self.interface(), Some((DeviceInterface::Cuda, _)))
    }

    /// How its device is reached, and its number there, where ggml's name says so.
    pub fn interface(&self) -> Option<(DeviceInterface, Option<u32>)> {
        device_interface(self.device_label())
    }

    /// What people call it: its process and device where there are several processes, the device where
    /// it is known ("CUDA0"), else the backend's name.
    pub fn label(&self) -> &str {
        if !self.called.is_empty() {
            return &self.called;
        }
        self.device_label()
    }

    /// The same without its process.
    pub fn device_label(&self) -> &str {
        match self.device.as_str() {
            "" | "unknown" => &self.name,
            device => device,
        }
    }
}

/// The kinds of device ggml knows, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceType {
    Cpu,
    Gpu,
    IntegratedGpu,
    Accelerator,
    /// A device made of other devices.
    Meta,
    Unknown,
}

impl DeviceType {
    pub fn from_ggml(number: i64) -> Self {
        match number {
            0 => Self::Cpu,
            1 => Self::Gpu,
            2 => Self::IntegratedGpu,
            3 => Self::Accelerator,
            4 => Self::Meta,
            _ => Self::Unknown,
        }
    }

    pub fn to_ggml(self) -> i64 {
        match self {
            Self::Cpu => 0,
            Self::Gpu => 1,
            Self::IntegratedGpu => 2,
            Self::Accelerator => 3,
            Self::Meta => 4,
            Self::Unknown => -1,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::IntegratedGpu => "IGPU",
            Self::Accelerator => "ACCEL",
            Self::Meta => "META",
            Self::Unknown => "device",
        }
    }
}
