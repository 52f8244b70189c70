//! The shaders. `cargo xtask shaders` makes the `.spv` files from those beside them.

use super::gpu::{Gpu, failed};
use super::instance::Physical;
use super::memory::{Buffer, Place};
use ash::vk;
use ggprof_analysis::peaks::Operands;

const READ: &[u8] = include_bytes!("shaders/read.spv");
const FMA: &[u8] = include_bytes!("shaders/fma.spv");
const DOT: &[u8] = include_bytes!("shaders/dot.spv");
const MATRICES: &[u8] = include_bytes!("shaders/matrices.spv");

/// Invocations of a group, and products of each in a turn, of the shaders without matrices.
const GROUP: u64 = 256;
const TIMES: u64 = 16;
/// Subgroups of a group, and products of each in a turn, of the shader with matrices.
const SUBGROUPS: u32 = 4;
const MATRICES_PER_TURN: u64 = 8;
const NEVER_BYTES: u64 = 64 * 1024;

/// A loop of products.
pub(super) struct Products {
    shader: &'static [u8],
    pub(super) by: &'static str,
    pub(super) operands: Operands,
    pub(super) ops_per_group_and_turn: u64,
    /// Size of a group, and of matrices; the shaders without matrices have none of them.
    constants: Vec<u32>,
}

/// Those that the device can do.
pub(super) fn products(physical: &Physical) -> Vec<Products> {
    let each = 2 * TIMES * GROUP;
    let constants = Vec::new;
    let mut all = vec![Products {
        shader: FMA,
        by: "fma",
        operands: Operands::F32,
        ops_per_group_and_turn: each,
        constants: constants(),
    }];
    if physical.has_integer_dot_product {
        all.push(Products {
            shader: DOT,
            by: "integer dot product",
            operands: Operands::Int8,
            ops_per_group_and_turn: 4 * each,
            constants: constants(),
        });
    }
    if let Some(size) = physical.matrices {
        let products: u64 = size.iter().map(|&length| u64::from(length)).product();
        all.push(Products {
            shader: MATRICES,
            by: "cooperative matrices",
            operands: Operands::F16,
            ops_per_group_and_turn: 2 * MATRICES_PER_TURN * u64::from(SUBGROUPS) * products,
            constants: [vec![SUBGROUPS * physical.subgroup], size.to_vec()].concat(),
        });
    }
    all
}

/// A shader with the two buffers and the number that all of them take.
pub(super) struct Pipeline<'g> {
    gpu: &'g Gpu<'g>,
    module: vk::ShaderModule,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pool: vk::DescriptorPool,
    set: vk::DescriptorSet,
    pipeline: vk::Pipeline,
    never: Buffer<'g>,
}

impl<'g> Pipeline<'g> {
    pub(super) fn reading(gpu: &'g Gpu<'g>, from: &Buffer<'g>) -> Result<Self, String> {
        Self::new(gpu, READ, &[], from)
    }

    pub(super) fn multiplying(
        gpu: &'g Gpu<'g>,
        products: &Products,
        any: &Buffer<'g>,
    ) -> Result<Self, String> {
        Self::new(gpu, products.shader, &products.constants, any)
    }

    fn new(
        gpu: &'g Gpu<'g>,
        shader: &[u8],
        constants: &[u32],
        from: &Buffer<'g>,
    ) -> Result<Self, String> {
        let mut made = Self {
            gpu,
            module: vk::ShaderModule::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pool: vk::DescriptorPool::null(),
            set: vk::DescriptorSet::null(),
            pipeline: vk::Pipeline::null(),
            never: Buffer::new(gpu, NEVER_BYTES, Place::Device)?,
        };
        made.lay_out()?;
        made.describe(from)?;
        made.compile(shader, constants)?;
        Ok(made)
    }

    fn lay_out(&mut self) -> Result<(), String> {
        let device = &self.gpu.device;
        let binding = |number| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let number =
            [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(4)];
        // SAFETY: valid descriptions, here and below; what is made is destroyed with `self`, which
        // borrows the device.
        unsafe {
            self.set_layout = device.create_descriptor_set_layout(&set, None).map_err(failed)?;
            let sets = [self.set_layout];
            let layout = vk::PipelineLayoutCreateInfo::default()
                .set_layouts(&sets)
                .push_constant_ranges(&number);
            self.layout = device.create_pipeline_layout(&layout, None).map_err(failed)?;
        }
        Ok(())
    }

    fn describe(&mut self, from: &Buffer<'_>) -> Result<(), String> {
        let device = &self.gpu.device;
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let sizes = [vk::DescriptorPoolSize::default().ty(kind).descriptor_count(2)];
        let pool = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let layouts = [self.set_layout];
        // SAFETY: see above; the pool has room for the one set.
        unsafe {
            self.pool = device.create_descriptor_pool(&pool, None).map_err(failed)?;
            let set = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pool)
                .set_layouts(&layouts);
            self.set = device.allocate_descriptor_sets(&set).map_err(failed)?[0];
        }
        let whole =
            |buffer| [vk::DescriptorBufferInfo::default().buffer(buffer).range(vk::WHOLE_SIZE)];
        let (from, never) = (whole(from.buffer), whole(self.never.buffer));
        let write = |number, buffer| {
            let write = vk::WriteDescriptorSet::default().dst_set(self.set).dst_binding(number);
            write.descriptor_type(kind).buffer_info(buffer)
        };
        // SAFETY: no command uses the set yet.
        unsafe { device.update_descriptor_sets(&[write(0, &from), write(1, &never)], &[]) };
        Ok(())
    }

    fn compile(&mut self, shader: &[u8], constants: &[u32]) -> Result<(), String> {
        let device = &self.gpu.device;
        let (words, _) = shader.as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let entries = (0..constants.len() as u32)
            .map(|id| vk::SpecializationMapEntry::default().constant_id(id).offset(4 * id).size(4));
        let entries: Vec<_> = entries.collect();
        let data: Vec<u8> = constants.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let module = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: see above; the shader needs no feature that the device was made without.
        unsafe {
            self.module = device.create_shader_module(&module, None).map_err(failed)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(self.module)
                .name(c"main")
                .specialization_info(&special);
            let wanted =
                [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
            let none = vk::PipelineCache::null();
            let made = device.create_compute_pipelines(none, &wanted, None);
            self.pipeline = made.map_err(|(_, why)| failed(why))?[0];
        }
        Ok(())
    }

    pub(super) fn dispatch(&self, commands: vk::CommandBuffer, groups: u32, number: u32) {
        let device = &self.gpu.device;
        let (point, stage) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
        // SAFETY: while recording, with objects of the same device. That the shader stays within the
        // buffers, whoever chose the number guarantees.
        unsafe {
            device.cmd_bind_pipeline(commands, point, self.pipeline);
            device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]);
            device.cmd_push_constants(commands, self.layout, stage, 0, &number.to_ne_bytes());
            device.cmd_dispatch(commands, groups, 1, 1);
        }
    }
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        let device = &self.gpu.device;
        // SAFETY: no command uses them any more; null is ignored.
        unsafe {
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_shader_module(self.module, None);
            device.destroy_descriptor_pool(self.pool, None);
            device.destroy_pipeline_layout(self.layout, None);
            device.destroy_descriptor_set_layout(self.set_layout, None);
        }
    }
}
