// Dot products of four bytes, sixteen independent ones in a turn.
#version 450
#extension GL_EXT_integer_dot_product : require

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer From { uvec4 from[]; };
layout(binding = 1) writeonly buffer Never { uint never; };
layout(push_constant) uniform Arguments { uint turns; };

void main() {
    int b = int(gl_LocalInvocationID.x * 0x85ebca6bu);
    int s[16];
    for (int i = 0; i < 16; i++) {
        s[i] = int(gl_LocalInvocationID.x) + i;
    }
    // Each product needs the one before: none can be left away or done once.
    for (uint turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 16; i++) {
            s[i] = s[i] + dotPacked4x8EXT(s[i], b);
        }
    }
    int sum = 0;
    for (int i = 0; i < 16; i++) {
        sum ^= s[i];
    }
    if (uint(sum) == 0x5eed5eedu) {
        never = uint(sum);
    }
}
