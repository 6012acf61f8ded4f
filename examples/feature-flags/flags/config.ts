/** The settings of the plugin, as the environment has them: texts, not checked yet. */
export interface FlagEnvironment {
  readonly alwaysOn: string | undefined;
  readonly refreshMs: string | undefined;
}

export function flagEnvironment(environment: NodeJS.ProcessEnv = process.env): FlagEnvironment {
  return { alwaysOn: environment['FEATURE_FLAGS_ON'], refreshMs: environment['FEATURE_FLAGS_REFRESH_MS'] };
}
