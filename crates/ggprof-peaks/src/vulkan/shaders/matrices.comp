// Products of f16 matrices by a subgroup, eight independent ones in a turn. The device says which
// sizes it multiplies, and how large its subgroups are; a workgroup has four.
#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint M = 16;
layout(constant_id = 2) const uint N = 16;
layout(constant_id = 3) const uint K = 16;
layout(binding = 0) readonly buffer From { uvec4 from[]; };
layout(binding = 1) buffer Never { float never[]; };
layout(push_constant) uniform Arguments { uint turns; };

void main() {
    float16_t number = float16_t(0.5) + float16_t(gl_SubgroupID) * float16_t(0.01);
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a =
        coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA>(number);
    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b =
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB>(number);
    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> s[8];
    for (int i = 0; i < 8; i++) {
        s[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(float(i));
    }
    for (uint turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 8; i++) {
            s[i] = coopMatMulAdd(a, b, s[i]);
        }
    }
    for (int i = 1; i < 8; i++) {
        s[0] += s[i];
    }
    // What it never equals, so that no product can be left away.
    if (s[0][0] == -1.0) {
        coopMatStore(s[0], never, 0, N, gl_CooperativeMatrixLayoutRowMajor);
    }
}
