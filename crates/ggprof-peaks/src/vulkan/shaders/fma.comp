// Fused multiplications and additions of f32, sixteen independent ones in a turn.
#version 450

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer From { uvec4 from[]; };
layout(binding = 1) writeonly buffer Never { uint never; };
layout(push_constant) uniform Arguments { uint turns; };

void main() {
    float a = 0.999 + float(gl_LocalInvocationID.x) * 1e-9;
    float b = 0.001;
    vec4 s0 = vec4(1, 2, 3, 4), s1 = vec4(5, 6, 7, 8), s2 = vec4(9, 10, 11, 12), s3 = vec4(13, 14, 15, 16);
    for (uint turn = 0; turn < turns; turn++) {
        s0 = fma(s0, vec4(a), vec4(b));
        s1 = fma(s1, vec4(a), vec4(b));
        s2 = fma(s2, vec4(a), vec4(b));
        s3 = fma(s3, vec4(a), vec4(b));
    }
    float sum = dot(s0 + s1 + s2 + s3, vec4(1));
    if (floatBitsToUint(sum) == 0x5eed5eed) {
        never = floatBitsToUint(sum);
    }
}
