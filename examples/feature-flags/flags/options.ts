import { z } from 'zod';
import type { FlagEnvironment } from './config.ts';

const Name = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be snake_case');

const Options = z.strictObject({
  /** Every flag that the code asks for, with a sentence for the admin site. */
  flags: z.record(Name, z.string().min(1)),
  /** Path of the route that tells a caller their flags. */
  path: z.templateLiteral(['/', z.string()]).default('/flags'),
});

const Environment = z.object({
  FEATURE_FLAGS_ON: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    ),
  FEATURE_FLAGS_REFRESH_MS: z.coerce.number().int().min(0).max(60_000).default(1000),
});

export type FeatureFlagOptions = z.input<typeof Options>;

export interface FlagSettings {
  readonly flags: Readonly<Record<string, string>>;
  readonly path: `/${string}`;
  /** On for every caller of this process, whatever the table has: for staging and for tests. */
  readonly alwaysOn: ReadonlySet<string>;
  /** How old the flags in memory may be. */
  readonly refreshMs: number;
}

/** Options and environment, checked together: one message with every problem. */
export function readOptions(options: FeatureFlagOptions, environment: FlagEnvironment): FlagSettings {
  const given = Options.safeParse(options);
  const set = Environment.safeParse({ FEATURE_FLAGS_ON: environment.alwaysOn, FEATURE_FLAGS_REFRESH_MS: environment.refreshMs });
  const problems = [given, set].flatMap(({ error }) => (error === undefined ? [] : [z.prettifyError(error)]));
  if (!given.success || !set.success) throw new TypeError(`featureFlags() cannot be used:\n${problems.join('\n')}`);
  return Object.freeze({
    ...given.data,
    alwaysOn: new Set(set.data.FEATURE_FLAGS_ON),
    refreshMs: set.data.FEATURE_FLAGS_REFRESH_MS,
  });
}
