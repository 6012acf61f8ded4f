import type { AdminAction } from '../app/admin/declaration.ts';
import type { AdminField } from '../app/admin/shapes.ts';
import { adminDone, adminEach } from '../app/admin/each.ts';
import { labelOf } from '../app/admin/model-columns.ts';
import { type ActionRule, actionRulesOf, type NamedRule, type TransitionRule } from '../crud/declare/action-rule.ts';
import { type AnyResource, STAFF } from '../crud/declare/resource.ts';
import type { AdminAccess } from '../crud/staff/admin-access.ts';
import { jsonSchemaOf } from '../http/declare/schema.ts';
import { hasRecentLogin } from '../permissions/built-ins.ts';
import type { Permission } from '../permissions/permission.ts';
import type { Plan } from './screen-plan.ts';
import { checked, inSentence } from './screen-rows.ts';
import type { ScreenActionWords, ScreenOptions, ScreenRow } from './screen-words.ts';
import { accessOf } from './staff-access.ts';

type Words = Omit<ScreenActionWords, 'name'>;

/** Each transition and action of the resource, with its words. Whether a staff member may do it is asked for each row. */
export function namedActions(plan: Plan): readonly AdminAction[] {
  const { resource, words } = plan;
  const transitions = Object.entries((resource.options.transitions ?? {}) as unknown as Readonly<Record<string, TransitionRule>>);
  const actions = Object.entries(siteActionsOf(resource));
  return [
    ...transitions.map(([name, rule]) =>
      namedAction(plan, name, rule, wordsOf(words, name), {
        done: String(rule.to),
        confirm: `The state becomes ${String(rule.to)}.`,
        act: (access, id, input) => access.transition(id, name, input),
      }),
    ),
    ...actions.map(([name, rule]) =>
      namedAction(plan, name, rule, wordsOf(words, name), {
        done: 'done',
        isDry: rule.effects === undefined,
        act: (access, id, input) => access.action(id, name, input),
      }),
    ),
  ];
}

/** The actions of the site. One that shows a value once is for the person who gets the value: here, somebody else would. */
export function siteActionsOf({ options }: AnyResource): Readonly<Record<string, ActionRule>> {
  const shown = new Set(Object.values(options.once ?? {}).flatMap(({ on }) => on));
  return Object.fromEntries(Object.entries(actionRulesOf(options, STAFF)).filter(([name]) => !shown.has(name)));
}

/** Those that only somebody who has logged in recently may do: the site asks for the login before it sends them. */
export function presenceOf({ resource, words: { needsPresence = [] } }: Plan): readonly string[] {
  const rules: readonly (readonly [string, NamedRule])[] = [
    ...Object.entries((resource.options.transitions ?? {}) as unknown as Readonly<Record<string, NamedRule>>),
    ...Object.entries(siteActionsOf(resource)),
  ];
  const needing = rules.flatMap(([name, { permission }]) => (permission !== undefined && asksForPresence(permission) ? [name] : []));
  return [...new Set([...needsPresence, ...needing])];
}

function asksForPresence(permission: Permission): boolean {
  if (permission.kind === hasRecentLogin.kind) return true;
  return permission.combinator === 'all' && permission.parts.some(asksForPresence);
}

/** The words of a transition or action; those of an action of the list's own are not among them. */
function wordsOf({ actions = [] }: ScreenOptions, name: string): Words {
  const { name: _, ...words } = actions.find((each) => each.name === name && !('run' in each)) ?? { name };
  return words;
}

interface Act {
  /** What the records are afterwards: `paid`. */
  readonly done: string;
  readonly confirm?: string;
  /** False: it has effects that a dry run cannot take back. */
  readonly isDry?: boolean;
  readonly act: (access: AdminAccess, id: string, input: unknown) => Promise<unknown>;
}

function namedAction({ resource, words: place, shape }: Plan, name: string, rule: NamedRule, given: Words, act: Act): AdminAction {
  const { when: _, done = act.done, fields: own, ...words } = given;
  const fields = own ?? inputFields(rule);
  const noun =
    given.done === undefined
      ? ([resource.name, `${resource.name}s`] as const)
      : ([inSentence(shape.singular), inSentence(shape.plural ?? shape.label)] as const);
  return {
    name,
    label: rule.summary ?? labelOf(name),
    tone: 'neutral',
    on: 'selection',
    ...(act.isDry === false ? {} : { dryRun: done }),
    ...(act.confirm === undefined ? {} : { confirm: act.confirm }),
    ...words,
    fields,
    async run(context, ids, sent) {
      const access = await accessOf(resource, context, place);
      const input = await inputOf(rule, fields, sent);
      const result = await adminEach(context, ids, async (id) => {
        await act.act(access, id, input);
      });
      return adminDone(result, noun, done);
    },
  };
}

const WHOLE = 'input';

/** The members of the input as fields; anything but a flat object is one field of JSON. */
function inputFields({ input }: NamedRule): readonly AdminField[] {
  if (input === undefined) return [];
  const { properties, required } = jsonSchemaOf(input, 'input') as {
    readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly required?: readonly string[];
  };
  const fields = Object.entries(properties ?? {}).map(([name, schema]) => inputField(name, schema, required?.includes(name) === true));
  const flat = fields.filter((field) => field !== null);
  return properties === undefined || flat.length < fields.length ? [{ name: WHOLE, label: 'Input', kind: 'json', required: true }] : flat;
}

function inputField(name: string, schema: Readonly<Record<string, unknown>>, required: boolean): AdminField | null {
  const kind = FIELD_KINDS[String(schema['type'])];
  if (kind === undefined) return null;
  const choices = Array.isArray(schema['enum']) ? schema['enum'].map(String).map((value) => ({ value, label: value })) : undefined;
  const help = schema['description'];
  return {
    name,
    label: labelOf(name),
    kind: choices === undefined ? kind : 'select',
    required,
    ...(choices === undefined ? {} : { choices }),
    ...(typeof help === 'string' ? { help } : {}),
  };
}

const FIELD_KINDS: Readonly<Partial<Record<string, AdminField['kind']>>> = {
  string: 'text',
  integer: 'number',
  number: 'number',
  boolean: 'bool',
};

async function inputOf({ input }: NamedRule, fields: readonly AdminField[], given: ScreenRow): Promise<unknown> {
  if (input === undefined) return undefined;
  const [first] = fields;
  const value = first?.name === WHOLE && first.kind === 'json' ? given[WHOLE] : given;
  return checked(await input['~standard'].validate(value), ['body', 'fields']);
}
