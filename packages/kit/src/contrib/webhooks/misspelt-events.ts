import type { App } from '../../app/module.ts';
import type { Fault } from '../../options/fault.ts';

/** The part of a resource that says which events it publishes. */
interface Publishing {
  readonly name: string;
  readonly options: { readonly events?: unknown; readonly transitions?: object };
}

/**
 * Event types that an application offers and that are one slip away from one that a resource publishes. Others are left alone: programs publish
 * types of their own.
 */
export function misspeltEvents(app: App, controller: string, offered: readonly string[]): Fault[] {
  const published = new Set([...app.controllers, ...app.resources].flatMap(eventTypes));
  return offered.flatMap((type): Fault[] => {
    const meant = published.has(type) ? undefined : [...published].find((each) => isOneSlip(type, each));
    if (meant === undefined) return [];
    const message = `${controller}: availableEvents has "${type}", which no resource publishes.`;
    return [{ id: 'W020', message, hint: `Did you mean "${meant}"?` }];
  });
}

function eventTypes(declared: object): string[] {
  const resource = 'crudResource' in declared ? (declared.crudResource as Publishing) : (declared as Partial<Publishing>);
  const { name, options } = resource;
  if (name === undefined || options?.events !== true) return [];
  return ['created', 'updated', 'deleted', 'restored', ...Object.keys(options.transitions ?? {})].map((change) => `${name}.${change}`);
}

/** One character too many, too few or another one, or two in the wrong order. */
function isOneSlip(given: string, meant: string): boolean {
  let start = 0;
  while (start < given.length && given[start] === meant[start]) start += 1;
  const [rest, wanted] = [given.slice(start), meant.slice(start)];
  const isSwapped = rest.length > 1 && rest[0] === wanted[1] && rest[1] === wanted[0] && rest.slice(2) === wanted.slice(2);
  return isSwapped || rest.slice(1) === wanted || rest === wanted.slice(1) || rest.slice(1) === wanted.slice(1);
}
