import type { Database } from '../../db/engine/db.ts';
import { type CompiledWhere, compileWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { compareTriggers } from '../../db/migrations/core/change-triggers.ts';
import type { Route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { isMembers, isPlainObject } from '../../options/value-rule.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import { fieldOf } from '../options/operation-field.ts';
import { FOLLOWED_OF_PEOPLE, leadsToOwner } from '../live/known-people.ts';
import { LATER_MS } from '../live/moment.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import { withoutEdge } from '../policy/without-edge.ts';
import { isLoggedColumn, triggeredTable } from '../write/change-log.ts';
import { rowsConditions } from './rows-faults.ts';

/** What a live list depends on without a change that reports it. Its changes would be missed. */
export function liveFaults(name: string, controller: object, mounted: MountedResource): Fault[] {
  const { policy, options } = mounted;
  if (options.live !== true) return [];
  const problems = [
    ...(fieldOf(options, 'list') in controller ? [] : [['it has no list', 'Remove live, or the `operations: { list: false }`.'] as const]),
    ...(isWrapped(options, controller)
      ? [
          [
            'a handler is around its list, and the stream does not pass through it',
            'Decide by `permission`, `rows` and `fields`, which hold for both, or wrap both: wrap("list", { alsoStream: true }, …).',
          ] as const,
        ]
      : []),
    ...(policy.using === 'default'
      ? []
      : [[`its rows are in the database "${policy.using}", and the change log is in "default"`, 'Remove live.'] as const]),
    ...accessProblems(policy),
    ...(policy.isTriggered ? [] : cascades(policy)),
    ...ruleProblems(policy, mounted.options.parent?.relation),
    ...fieldProblems(policy, mounted.output, options.liveWithout),
  ];
  return problems.map(([problem, hint]) => ({ id: 'E035', message: `${name}: the list cannot be live: ${problem}.`, hint }));
}

function isWrapped(options: AnyCrudOptions, controller: object): boolean {
  const routes = controller as Readonly<Record<string, Partial<Route> | undefined>>;
  const { isUnwrapped, isStreamWrapped } = routes[fieldOf(options, 'list')] ?? {};
  return isUnwrapped === false && isStreamWrapped !== true;
}

/** The triggers that the changes of a live list are logged by. Without a policy there is none. */
export async function triggerFaults(db: Database, name: string, policy: Policy | undefined): Promise<Fault[]> {
  if (policy?.isTriggered !== true || !policy.isLogged) return [];
  const { missing } = await compareTriggers(db, [triggeredTable(policy.model)]);
  if (missing.length === 0) return [];
  const message = `${name}: the list cannot be live: the triggers that log the changes of "${policy.tableName}" are missing in the database.`;
  return [{ id: 'E035', message, hint: 'Run npx kit migrate.' }];
}

type Problem = readonly [problem: string, hint: string];

function accessProblems({ options: { access }, audienceRule }: Policy): Problem[] {
  if (access === undefined || audienceRule?.access === false) return [];
  const fault = access.live === undefined ? 'changes of what it decides by are not followed' : access.live.fault();
  return fault === undefined ? [] : [[`its rows depend on ${access.name}: ${fault}`, 'Remove live, or decide by columns of the row.']];
}

/** The database changes such rows by itself. */
function cascades({ statements }: Policy): Problem[] {
  return statements.columns.flatMap(({ name, settings: { reference } }) =>
    reference === undefined || reference.isConstrained === false || (reference.onDelete ?? 'restrict') === 'restrict'
      ? []
      : [
          [
            `the database changes its rows when a row that "${name}" refers to is deleted (on delete ${reference.onDelete})`,
            `Use onDelete: 'restrict', and delete the rows before the row that they refer to.`,
          ] as const,
        ],
  );
}

/** `parent`: the relation to the record that the list is below. Whether the caller sees it is asked with the rights. */
function ruleProblems(policy: Policy, parent: string | undefined): Problem[] {
  const { anonymous } = policy.options;
  const audience = policy.audienceRule?.rows;
  const hint = 'Decide by columns of the row. A column that is sensitive, or has JSON, arrays or bytes, is not logged.';
  const given = [
    ...rowsConditions(policy, new Date(0)).map((where) => ['rows', where] as const),
    ['anonymous', anonymous] as const,
    ['the rows of the audience', audience] as const,
  ];
  const undecided = new Set(
    given.flatMap(([rule, where]) =>
      typeof where === 'function' || (isMembers(where) && !isOfRow(policy, parent === undefined ? where : withoutEdge(where, parent)))
        ? [rule]
        : [],
    ),
  );
  const [first, then] = TIMES.map((now) =>
    rowsConditions(policy, now).map((where) => (parent === undefined ? where : withoutEdge(where, parent))),
  );
  const isFollowed = first?.every((where, place) => movesWithClock(policy, where, then?.[place])) === true;
  return [
    ...[...undecided].map((rule) => [`${rule} depends on more than logged columns of the row`, hint] as const),
    ...(isFollowed
      ? []
      : [
          [
            'rows depends on the time in a way that cannot be followed',
            'Compare a timestamp with `now`, or with a time that is always as far from it, by gt, gte, lt or lte; or write the state to a column, for example by a job.',
          ] as const,
        ]),
  ];
}

/** Not apart by whole seconds: a rule that rounds the time is found out. */
const TIMES = [new Date(0), new Date(1e12 + LATER_MS)] as const;

/** Whether nothing differs at two times, or only times that the rows are compared with. */
function movesWithClock(policy: Policy, first: unknown, then: unknown): boolean {
  if (JSON.stringify(first, withoutBigints) === JSON.stringify(then, withoutBigints)) return true;
  try {
    const [compiled, compiledThen] = [first, then].map((where) => compileWhere(policy.model, where as Where));
    return (compiled as CompiledWhere).moving(TIMES[0], compiledThen as CompiledWhere, TIMES[1]) !== undefined;
  } catch {
    return false;
  }
}

function withoutBigints(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}

/** Whether a condition names columns of the row alone. `isKnown`: or a relation to a row that is. */
function isOfRow(policy: Policy, where: unknown, isKnown: (relation: string, where: unknown) => boolean = () => false): boolean {
  if (Array.isArray(where)) return where.every((each) => isOfRow(policy, each, isKnown));
  if (!isMembers(where)) return true;
  if (!isPlainObject(where)) return false;
  return Object.entries(where).every(([name, inner]) => {
    if (name === 'and' || name === 'or' || name === 'not') return isOfRow(policy, inner, isKnown);
    const column = policy.statements.byName.get(name);
    return column === undefined ? isKnown(name, inner) : isLoggedColumn(column);
  });
}

function fieldProblems(policy: Policy, output: ReadonlySet<string> | undefined, without: readonly string[] = []): Problem[] {
  return widestView(policy, output)
    .computedFields()
    .flatMap(({ name, load, ofRow, related }) =>
      without.includes(name) || isFollowedState(policy, name) || ((load === undefined || ofRow === true) && related.size === 0)
        ? []
        : [
            [
              `the field "${name}" depends on other records, or on the time`,
              'Leave it out of `output`, or of the stream alone by `liveWithout`, or remove live.',
            ] as const,
          ],
    );
}

/** A state whose conditions are decided by the row, its owner and the time. */
function isFollowedState(policy: Policy, name: string): boolean {
  const state = policy.derived.get(name);
  if (state === undefined) return false;
  const isKnown = (relation: string, where: unknown) => leadsToOwner(policy, relation) && isOfPeople(where);
  const [first, then] = TIMES.map((now) => state.conditions(now)) as [unknown[], unknown[]];
  return first.every((where, place) => isOfRow(policy, where, isKnown) && movesWithClock(policy, where, then[place]));
}

function isOfPeople(where: unknown): boolean {
  if (Array.isArray(where)) return where.every(isOfPeople);
  return (
    isMembers(where) &&
    Object.entries(where).every(([name, inner]) =>
      ['is', 'and', 'or', 'not'].includes(name) ? isOfPeople(inner) : FOLLOWED_OF_PEOPLE.has(name),
    )
  );
}
