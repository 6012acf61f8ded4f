import { LoadFailure } from '../document/load-failure.ts';

/** A failure of the repository as a whole: every section that reads from it fails the same way. */
export function gitFailure(repository: string, message: string): LoadFailure {
  return new LoadFailure('git', `git ${repository}`, message);
}
