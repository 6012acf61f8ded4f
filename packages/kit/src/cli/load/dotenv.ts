import { unreadable } from '../../work/file-fault.ts';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { CliFailure } from '../terminal/cli-failure.ts';

/** Variables of the file `.env` beside the config file; none in production, or where there is no such file. */
export function readDotenv(configFile: string | null, environment: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  if (configFile === null || environment['NODE_ENV'] === 'production') return {};
  const file = join(dirname(configFile), '.env');
  try {
    return parseEnv(readFileSync(file, 'utf8')) as Record<string, string>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new CliFailure(unreadable(file, error as Error), 1, { cause: error });
  }
}

/** Adds them to the environment. Variables that are set already win. */
export function addDotenv(configFile: string | null, environment: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(readDotenv(configFile, environment))) environment[name] ??= value;
}
