import type { Check } from '../../../app/declare/check.ts';
import type { App } from '../../../app/declare/module.ts';
import { unboundKeys } from '../rows/store.ts';

const SHOWN = 5;

/** W039: keys from before the app had tenants act in every tenant of their owner. Only where a directory tells which these are. */
export const unboundKeysCheck: Check<App> = {
  name: 'unbound_api_keys',
  async run({ db, clock, registry }) {
    if (registry.tenants.directory === null) return [];
    const prefixes = await unboundKeys(db, clock.now());
    if (prefixes.length === 0) return [];
    const more = prefixes.length > SHOWN ? ', …' : '';
    const which = prefixes.length === 1 ? 'API key is' : 'API keys are';
    return [
      {
        id: 'W039',
        message: `${prefixes.length} ${which} bound to no tenant and act in every tenant of their owner: ${prefixes.slice(0, SHOWN).join(', ')}${more}.`,
        hint: 'Bind each with `kit apikey bind --prefix <prefix> --tenant <tenant>`, or rotate it. `kit apikey list` shows them.',
      },
    ];
  },
};
