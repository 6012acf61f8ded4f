import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * A dependency of this package that most starts do not need: the first call of the returned function loads it. Not for peers: a missing one has to be
 * reported at startup.
 */
export function onDemand<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= require(name) as T);
}
