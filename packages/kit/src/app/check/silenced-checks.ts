import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { checkDescriptions } from './checks.ts';
import type { App } from '../declare/module.ts';

/** The reason why warnings of this id are silenced; undefined where they are not. */
export function isSilenced({ silencedChecks }: Pick<App, 'silencedChecks'>, id: string | undefined): string | undefined {
  return id !== undefined && Object.hasOwn(silencedChecks, id) ? silencedChecks[id] : undefined;
}

/** Errors cannot be silenced, a reason is a sentence, and an id that no check has silences nothing. */
export function silencedFaults(silenced: Readonly<Record<string, unknown>>): Fault[] {
  return Object.entries(silenced).flatMap(([id, reason]): Fault[] => {
    const place = `createApp: "silencedChecks.${id}"`;
    if (!id.startsWith('W')) return [{ id: 'E011', message: `${place}: only warnings (W…) can be silenced.` }];
    if (typeof reason !== 'string' || reason.trim().length < 3)
      return [
        { id: 'E011', message: `${place}: has no reason.`, hint: `Write why it is right here: { ${id}: 'the table has 200 rows' }.` },
      ];
    // Ids of plugins have a name in them: W_FLAGS_1.
    if (/^W\d/.test(id) && checkDescriptions[id] === undefined)
      return [
        {
          id: 'E011',
          message: `${place}: there is no such check.`,
          hint: didYouMean(id, Object.keys(checkDescriptions)).trim() || undefined,
        },
      ];
    return [];
  });
}
