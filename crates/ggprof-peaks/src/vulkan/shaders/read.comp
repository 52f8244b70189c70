// Reads memory from end to end: each invocation takes every n-th 16 bytes, four at a time. What it sums
// up is stored where it equals a number that it never equals: so no load can be left away.
#version 450

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer From { uvec4 from[]; };
layout(binding = 1) writeonly buffer Never { uint never; };
layout(push_constant) uniform Arguments { uint quads; };

void main() {
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uvec4 sum = uvec4(0);
    for (uint i = gl_GlobalInvocationID.x; i < quads; i += 4 * stride) {
        sum ^= from[i] ^ from[i + stride] ^ from[i + 2 * stride] ^ from[i + 3 * stride];
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x5eed5eed) {
        never = sum.x;
    }
}
