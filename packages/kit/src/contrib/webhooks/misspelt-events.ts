import type { App } from '../../app/declare/module.ts';
import type { Fault } from '../../options/fault.ts';

/** A resource, as far as its events are concerned. */
interface Publishing {
  readonly eventTypes: Readonly<Record<string, string>>;
  readonly options: { readonly events?: unknown };
}

/**
 * Event types that an application offers and that are one slip away from one that a resource publishes or that `webhooks({ eventTypes })`
 * declares. Others are left alone: programs publish types of their own.
 */
export function misspeltEvents(app: App, controller: string, offered: readonly string[]): Fault[] {
  const published = new Set([...app.controllers, ...app.resources].flatMap(publishedTypes));
  const known = new Set([...published, ...app.modules.flatMap(({ openApiWebhooks = {} }) => Object.keys(openApiWebhooks))]);
  return offered.flatMap((type): Fault[] => {
    const meant = known.has(type) ? undefined : [...known].find((each) => isOneSlip(type, each));
    if (meant === undefined) return [];
    const message = `${controller}: availableEvents has "${type}", which ${published.has(meant) ? 'no resource publishes' : 'webhooks({ eventTypes }) does not declare'}.`;
    return [{ id: 'W020', message, hint: `Did you mean "${meant}"?` }];
  });
}

function publishedTypes(declared: object): string[] {
  const { eventTypes, options } = ('crudResource' in declared ? declared.crudResource : declared) as Partial<Publishing>;
  return options?.events === true || options?.events === 'tenant' ? Object.values(eventTypes ?? {}) : [];
}

/** One character too many, too few or another one, or two in the wrong order. */
function isOneSlip(given: string, meant: string): boolean {
  let start = 0;
  while (start < given.length && given[start] === meant[start]) start += 1;
  const [rest, wanted] = [given.slice(start), meant.slice(start)];
  const isSwapped = rest.length > 1 && rest[0] === wanted[1] && rest[1] === wanted[0] && rest.slice(2) === wanted.slice(2);
  return isSwapped || rest.slice(1) === wanted || rest === wanted.slice(1) || rest.slice(1) === wanted.slice(1);
}
