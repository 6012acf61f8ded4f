import type { App, Check, CheckFault } from 'kit';
import { list } from 'kit/db';
import { featureFlags } from './models.ts';
import type { FlagSettings } from './options.ts';

/** Runs at startup and with `kit check` and `kit doctor`. An id that begins with E keeps the app from starting, W is a warning. */
export function flagChecks({ flags, alwaysOn }: FlagSettings): Check<App>[] {
  return [
    {
      name: 'flags that nobody declared',
      async run({ db }): Promise<CheckFault[]> {
        const known = Object.keys(flags).join(', ');
        const stored = (await list(db, featureFlags, { limit: 1000 })).map(({ name }) => name);
        return [
          ...[...alwaysOn].filter(isUnknown).map((name) => ({
            id: 'E_FLAGS_1',
            message: `FEATURE_FLAGS_ON names the flag "${name}", which is not declared.`,
            hint: `Declared: ${known}.`,
          })),
          ...stored.filter(isUnknown).map((name) => ({
            id: 'W_FLAGS_1',
            message: `The table feature_flags has the flag "${name}", which is not declared.`,
            hint: 'Delete the row on the admin site, or declare the flag.',
          })),
        ];
      },
    },
  ];

  function isUnknown(name: string): boolean {
    return !Object.hasOwn(flags, name);
  }
}
