import type { CompiledRoute, Middleware } from 'kit';
import { flagErrors } from './errors.ts';
import { isFlagOn } from './flags.ts';
import type { FlagSettings } from './options.ts';

/** A route names its flag: `route.post('/', { metadata: { flag: 'new_checkout' } }, …)`. */
function flagOf({ metadata }: CompiledRoute): string | undefined {
  const { flag } = metadata;
  return flag === undefined ? undefined : typeof flag === 'string' ? flag : JSON.stringify(flag);
}

/** Checked for every route while the app is created: a misspelt flag would keep its route closed forever. */
export function requireDeclaredFlag(route: CompiledRoute, { flags }: FlagSettings): void {
  const flag = flagOf(route);
  if (flag !== undefined && !Object.hasOwn(flags, flag))
    throw new TypeError(`metadata.flag is "${flag}", and featureFlags() declares ${Object.keys(flags).join(', ') || 'no flags'}.`);
}

/** Routes behind a flag return 404 to callers who do not have it. Other routes do not pay for it. */
export function behindFlag(): Middleware {
  const { status, code, detail } = flagErrors.feature_not_available;
  return {
    name: 'feature_flags',
    documents: { raises: [{ status, code, detail }] },
    appliesTo: (route) => flagOf(route) !== undefined,
    async handle({ route, db, user }, next) {
      const flag = route === null ? undefined : flagOf(route);
      if (flag !== undefined && !(await isFlagOn(db, flag, user?.id ?? null))) throw flagErrors.feature_not_available();
      return next();
    },
  };
}
