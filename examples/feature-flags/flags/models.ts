import { model, t, timestamps } from 'kit/db';

/** A declared flag without a row is off. */
export const featureFlags = model('feature_flags', {
  name: t.text({ max: 64, pattern: '^[a-z][a-z0-9_]*$' }).pk(),
  /** For how many users of a hundred the flag is on. */
  percentage: t.int({ min: 0, max: 100 }).dbDefault(0),
  ...timestamps(),
});
