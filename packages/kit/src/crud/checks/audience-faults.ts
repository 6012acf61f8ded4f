import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { InvalidOptions } from '../../options/read-options.ts';
import { type AnyResource, hasRowRule } from '../declare/resource.ts';

/** A name that no audience of the resource has would be served nothing that somebody decided about. */
export function audienceFaults(place: string, { name, options }: AnyResource, audience: string | null): Fault[] {
  const known = Object.keys(options.audiences ?? {});
  if (audience === null)
    return hasRowRule(options) || known.length === 0
      ? []
      : [
          {
            id: 'E013',
            message: `${place}: the resource "${name}" says which rows audiences see, and none is set.`,
            hint: `Set audience: '${known[0]}', or a row rule in the resource.`,
          },
        ];
  if (known.includes(audience)) return [];
  return [
    {
      id: 'E013',
      message: `${place}: the resource "${name}" has no audience "${audience}".`,
      hint: `${known.length === 0 ? 'Add it to audiences of the resource.' : `It has ${known.join(', ')}.`}${didYouMean(audience, known)}`,
    },
  ];
}

export function requireAudience(resource: AnyResource, audience: string | null): void {
  const faults = audienceFaults(`crudOf(${resource.name}).as()`, resource, audience);
  if (faults.length > 0) throw new InvalidOptions(faults);
}
