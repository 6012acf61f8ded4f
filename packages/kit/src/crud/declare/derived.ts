import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Schema } from '../../http/declare/schema.ts';
import { InvalidOptions, requireArguments } from '../../options/read-options.ts';
import { anObject, filledText, listOf } from '../../options/value-rule.ts';

/** What the conditions of a derived state may depend on besides the row: the moment of the request. */
export interface DerivedContext {
  readonly now: Date;
}

type DerivedCondition = (context: DerivedContext) => object | boolean;

/** A state that conditions decide; see {@link derived}. */
export interface Derived<N extends string = string> {
  readonly isDerived: true;
  readonly names: readonly N[];
  /** Of every name but the last. */
  readonly conditions: Readonly<Record<string, DerivedCondition>>;
  readonly requires: readonly never[];
  readonly response: Schema<N>;
  /** Made for each model from the conditions. */
  readonly load: (rows: readonly object[]) => readonly N[];
}

type AllButLast<N extends readonly string[]> = N extends readonly [...infer F extends string[], string] ? F[number] : never;

/**
 * A field that says in which state a row is: the first whose condition holds, else the last. The conditions are data, as in `rows`; the field, filters
 * and statistics follow from them.
 *
 * @example
 * ```ts
 * const ticketResource = resource(tickets, {
 *   owner: 'owner_id',
 *   computed: {
 *     state: derived(['closed', 'overdue', 'open'], {
 *       closed: () => ({ closed_at: { isnull: false } }),
 *       overdue: ({ now }) => ({ due_at: { lte: now } }),
 *     }),
 *   },
 * });
 * class TicketController extends CrudController(ticketResource, { permission: isAuthenticated, filters: { state: ['eq'] } }) {}
 * ```
 */
export function derived<const N extends readonly [string, string, ...string[]]>(
  names: N,
  conditions: { readonly [K in AllButLast<N>]: DerivedCondition },
): Derived<N[number]> {
  requireArguments('derived()', { names, conditions }, { names: listOf(filledText, { min: 2 }), conditions: anObject });
  const given: Readonly<Record<string, unknown>> = conditions;
  const conditional = names.slice(0, -1);
  const missing = conditional.filter((name) => typeof given[name] !== 'function');
  const unknown = Object.keys(given).filter((name) => !conditional.includes(name));
  const problems = [
    ...(new Set(names).size < names.length ? ['it has a name twice'] : []),
    ...missing.map((name) => `"${name}" has no condition`),
    ...unknown.map((name) => `"${name}" ${name === names.at(-1) ? 'is the last, which needs no condition' : 'is not one of its names'}`),
  ];
  if (problems.length > 0)
    throw new InvalidOptions([
      {
        id: 'E012',
        message: `derived(): ${problems.join(', ')}.`,
        hint: "derived(['closed', 'open'], { closed: () => ({ closed_at: { isnull: false } }) }).",
      },
    ]);
  return Object.freeze({
    isDerived: true,
    names,
    conditions: given as Derived['conditions'],
    requires: [],
    response: jsonSchema<N[number]>({ type: 'string', enum: [...names] }),
    load: () => {
      throw new Error('The conditions of a derived state need a model.');
    },
  });
}

export function isDerived(field: object): field is Derived {
  return (field as Partial<Derived>).isDerived === true;
}
