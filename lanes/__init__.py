"""What a lane is: policy, guard, channels, evidence, and the five suites."""
