import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { actionRulesOf, isTransitionName } from '../declare/action-rule.ts';
import { PAST_OPERATIONS } from '../declare/event-types.ts';
import { encryptedColumnFaults } from './encryption-faults.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import { transitionRulesOf } from '../write/possible-transitions.ts';

const pastOperations: ReadonlySet<string> = new Set(Object.values(PAST_OPERATIONS));

/** What is wrong with the state, computed fields and unique columns of a resource. */
export function columnFaults(policy: Policy, place: string): Fault[] {
  const rules = [stateFaults, actionFaults, computedFaults, shownFaults, uniqueFaults, referenceFaults, encryptedColumnFaults];
  return rules.flatMap((faults) => faults(policy, place));
}

function stateFaults(policy: Policy, place: string): Fault[] {
  const { options, statements } = policy;
  const transitions = Object.entries(transitionRulesOf(policy));
  const state = options.state as string | undefined;
  if (state === undefined)
    return transitions.length === 0
      ? []
      : [{ id: 'E018', message: `${place}: has transitions but no state.`, hint: 'Set state: "status".' }];
  const column = statements.byName.get(state);
  if (column === undefined)
    return [
      {
        id: 'E012',
        message: `${place}: state refers to the unknown column "${state}".`,
        hint: didYouMean(state, [...statements.byName.keys()]).trim() || undefined,
      },
    ];
  const values = column.definition.values ?? [];
  if (column.definition.kind !== 'enum')
    return [{ id: 'E018', message: `${place}: the state column "${state}" is not an enum.`, hint: "t.enum(['open', 'paid'])." }];
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E018', message: `${place}: the transition ${message}`, hint });
  for (const [name, { from, to }] of transitions) {
    if (!isTransitionName(name))
      add(`${JSON.stringify(name)} has a name that cannot be part of a URL.`, 'Use letters, digits, "-" and "_": "close".');
    if (from.length === 0) add(`"${name}" can never run.`, 'Name a state in from.');
    if (pastOperations.has(name)) add(`"${name}" has the name of a built-in change.`, 'Give it another name: a verb, such as "close".');
    for (const each of [...from, to])
      if (!values.includes(each as string))
        add(`"${name}" has the state "${String(each)}", which "${state}" cannot be.`, `Known: ${values.join(', ')}.`);
  }
  return faults;
}

/** Actions and transitions share URLs, audit entries and event types. */
function actionFaults({ options }: Policy, place: string): Fault[] {
  const faults: Fault[] = [];
  const audiences = Object.keys(options.audiences ?? {});
  const add = (id: string, message: string, hint: string) => void faults.push({ id, message: `${place}: the action ${message}`, hint });
  for (const [name, { audience, response, status }] of Object.entries(actionRulesOf(options))) {
    if (!isTransitionName(name))
      add('E018', `${JSON.stringify(name)} has a name that cannot be part of a URL.`, 'Use letters, digits, "-" and "_": "send-again".');
    if (pastOperations.has(name))
      add('E018', `"${name}" has the name of a built-in change.`, 'Give it another name: a verb, such as "send".');
    if (Object.hasOwn(options.transitions ?? {}, name))
      add('E018', `"${name}" has the name of a transition.`, 'Give one of them another name.');
    if (audience !== undefined && !audiences.includes(audience))
      add(
        'E013',
        `"${name}" is for the audience "${audience}", which the resource does not have.`,
        `It has ${audiences.join(', ') || 'none'}.${didYouMean(audience, audiences)}`,
      );
    if (status === 204 && response !== undefined)
      add('E018', `"${name}" has a response, and the status 204 of none.`, 'Remove one of them.');
  }
  return faults;
}

function computedFaults(policy: Policy, place: string): Fault[] {
  const known = [...policy.statements.byName.keys()];
  // In the place of a column that is hidden it is the only one of its name.
  const view = widestView(policy);
  const isTaken = (name: string) =>
    view.knows(name) !== undefined ||
    Object.hasOwn(policy.options.shown ?? {}, name) ||
    Object.hasOwn(policy.resource.relations as object, name);
  const faults: Fault[] = [];
  for (const [name, { requires }] of Object.entries(policy.options.computed ?? {})) {
    const add = (id: string, message: string, hint?: string) =>
      void faults.push({ id, message: `${place}: the computed field "${name}" ${message}`, hint });
    faults.push(...derivedFaults(policy, place, name));
    if (isTaken(name)) add('E018', 'has the name of a column or relation.', 'Give it another name.');
    for (const path of requires) {
      const [first = '', second, ...deeper] = path.split('.');
      const edge = policy.edge(first);
      if (second === undefined) {
        if (!known.includes(first)) add('E012', `requires the unknown column "${first}".`, didYouMean(first, known).trim() || undefined);
      } else if (edge?.isLoaded === true)
        add('E017', `requires "${path}", but the users are in another database.`, 'Load it: load: (rows, …) => ….');
      else if (edge?.kind !== 'one' || !edge.target.statements.byName.has(second) || deeper.length > 0)
        add('W006', `requires "${path}", which is not a column of a to-one relation.`, 'The field receives null for it.');
    }
  }
  return faults;
}

/** Conditions of a derived state: the database and JavaScript must be able to decide them. */
function derivedFaults(policy: Policy, place: string, name: string): Fault[] {
  const state = policy.derived.get(name);
  if (state === undefined) return [];
  const problem = state.problem() ?? state.conditions(new Date(0)).flatMap((where) => policy.rows.refusalOf(where) ?? [])[0];
  if (problem === undefined) return [];
  return [
    {
      id: 'E012',
      message: `${place}: the derived state "${name}" has a condition that cannot be used: ${problem}`,
      hint: 'Use conditions on columns of the row, and on columns of to-one relations: { owner: { is: { is_active: true } } }.',
    },
  ];
}

/** A key is part of addresses and cursors: it is the same wherever it stands. */
function shownFaults(policy: Policy, place: string): Fault[] {
  const known = [...policy.statements.byName.keys()];
  return Object.entries(policy.options.shown ?? {}).flatMap(([name, { requires }]): Fault[] => {
    if (name === policy.key.name)
      return [{ id: 'E012', message: `${place}: shown has the key "${name}".`, hint: 'Use a computed field with another name.' }];
    const problem = known.includes(name) ? `"${name}" requires` : 'refers to';
    return [name, ...requires]
      .filter((each) => !known.includes(each))
      .map((each) => ({
        id: 'E012',
        message: `${place}: shown ${problem} the unknown column "${each}".`,
        hint: didYouMean(each, known).trim() || undefined,
      }));
  });
}

/** Without a constraint, the database does not say that two columns cannot be compared before a statement does. */
function referenceFaults(policy: Policy, place: string): Fault[] {
  return policy.statements.columns.flatMap((column): Fault[] => {
    const { reference, kind } = column.settings;
    const target = reference?.isConstrained === false ? policy.referenced(column) : undefined;
    const other = target?.settingsOf(target.key.name).kind;
    if (target === undefined || other === kind) return [];
    const message = `${place}: "${column.name}" refers to "${target.model.name}" and is ${kind}, but "${target.key.name}" there is ${other}.`;
    return [{ id: 'E017', message, hint: 'One statement compares both: give the columns the same type.' }];
  });
}

/** A unique value that clients send tells every caller that some row has it. */
function uniqueFaults(policy: Policy, place: string): Fault[] {
  const { tenant, model, owner, statements } = policy;
  const scoping = [tenant?.column, owner?.column].filter((name) => name !== undefined);
  if (scoping.length === 0) return [];
  const isSent = (name: string) => {
    const column = statements.byName.get(name.replace(/^-/, ''));
    return column !== undefined && policy.accepts(column);
  };
  return model.table.indexes
    .filter(({ unique, columns }) => unique && !scoping.includes((columns[0] ?? '').replace(/^-/, '')) && columns.some(isSent))
    .map(({ columns }) => ({
      id: 'W011',
      message: `${place}: "${columns.join(', ')}" is unique over all ${tenant === undefined ? 'owners' : 'tenants'}: a 409 reveals that another ${tenant === undefined ? 'owner' : 'tenant'} already has the value.`,
      hint: `Make "${scoping[0]}" the first column of the index, unless the value must be unique across all of them.`,
    }));
}
