export { isFlagOn } from './flags/flags.ts';
export { featureFlags } from './flags/plugin.ts';
export type { FeatureFlagOptions } from './flags/options.ts';
