import { devNull } from 'node:os';
import { fileURLToPath } from 'node:url';

/** Variables of the server that git, gpg and ssh-keygen need. Nothing else is passed on: the environment of the server holds secrets. */
export interface ProgramVariables {
  readonly PATH?: string;
  readonly TMPDIR?: string;
}

/**
 * The whole environment of a git process. Its Git directory is an empty one of this package, so no configuration, hook, attribute or
 * replacement of the operator's repository is ever read; only objects come from there.
 */
export function gitEnvironment(objects: string, commit: string, variables: ProgramVariables): Record<string, string> {
  const format = commit.length === 64 ? 'sha256' : 'sha1';
  return {
    ...variables,
    GIT_DIR: fileURLToPath(new URL(`../../isolated-git-dir/${format}`, import.meta.url)),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: devNull,
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    // A partial clone would fetch missing objects by programs of its configuration, which is not read; this is the second lock.
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: '',
    GIT_TERMINAL_PROMPT: '0',
    LC_ALL: 'C',
  };
}
