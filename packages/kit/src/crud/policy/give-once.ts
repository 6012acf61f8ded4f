import { didYouMean } from '../../options/did-you-mean.ts';
import type { GiveOnce } from '../declare/resource.ts';
import type { Policy } from './policy.ts';

/** The values that the response of an operation shows once, in the order of their declaration. */
export function onceNames({ options: { once = {} } }: Policy, operation: string): string[] {
  return Object.keys(once).filter((name) => once[name]?.on.includes(operation));
}

/** What a hook gives values with. A value that no response would show is an error, so that the write is undone: it cannot be asked for again. */
export function giveOnce(policy: Policy, operation: string, collected: Map<string, string | null> | undefined): GiveOnce {
  return (name, value) => {
    const known = onceNames(policy, operation);
    const place = `resource(${policy.model.name})`;
    if (!known.includes(name))
      throw new Error(
        `once("${name}"): "${operation}" of ${place} does not show it.${didYouMean(name, known)} Add it to once: { ${name}: { on: ['${operation}'] } }.`,
      );
    if (typeof value !== 'string' || value === '') throw new TypeError(`once("${name}") of ${place} needs a string.`);
    if (collected === undefined)
      throw new Error(
        `once("${name}"): nobody would see the value, which is shown by the response of "${operation}" only. Call the function that writes the row.`,
      );
    collected.set(name, value);
  };
}

/** An error where a value is missing that the response promises; null for one that may be. */
export function requireOnce(policy: Policy, operation: string, given: Map<string, string | null>): void {
  const absent = onceNames(policy, operation).filter((name) => !given.has(name));
  const missing = absent.filter((name) => policy.options.once?.[name]?.nullable !== true);
  for (const name of absent) given.set(name, null);
  if (missing.length > 0)
    throw new Error(
      `"${operation}" of resource(${policy.model.name}) shows "${missing.join('", "')}" once, but nothing gave it: call once("${missing[0]}", value).`,
    );
}
