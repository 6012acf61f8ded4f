import type { AdminAction } from '../app/admin/declaration.ts';
import type { AdminField, AdminResult } from '../app/admin/shapes.ts';
import { adminDone, adminEach, type EachResult } from '../app/admin/each.ts';
import { inSentence, labelOf } from '../app/admin/model-columns.ts';
import { type ActionRule, actionRulesOf, type NamedRule, type TransitionRule } from '../crud/declare/action-rule.ts';
import { type AnyResource, STAFF } from '../crud/declare/resource.ts';
import { itemError } from '../crud/input/item-error.ts';
import type { AdminAccess, AdminWrite } from '../crud/staff/admin-access.ts';
import { isKitError } from '../errors/kit-error.ts';
import { jsonSchemaOf } from '../http/declare/schema.ts';
import { hasRecentLogin } from '../permissions/built-ins.ts';
import type { Permission } from '../permissions/permission.ts';
import type { Plan } from './screen-plan.ts';
import { checked } from './screen-rows.ts';
import type { ScreenActionWords, ScreenOptions, ScreenRow } from './screen-words.ts';
import { accessOf } from './staff-access.ts';

type Words = Omit<ScreenActionWords, 'name'>;

/** Each transition and action of the resource, with its words. Whether a staff member may do it is asked for each row. */
export function namedActions(plan: Plan): readonly AdminAction[] {
  const { resource, words } = plan;
  const transitions = Object.entries((resource.options.transitions ?? {}) as unknown as Readonly<Record<string, TransitionRule>>);
  const actions = Object.entries(siteActionsOf(plan));
  return [
    ...transitions.map(([name, rule]) =>
      namedAction(plan, name, rule, wordsOf(words, name), {
        done: String(rule.to),
        confirm: `The state becomes ${String(rule.to)}.`,
        act: (access, id, input, write) => access.transition(id, name, input, write),
      }),
    ),
    ...actions.map(([name, rule]) =>
      namedAction(plan, name, rule, wordsOf(words, name), {
        done: 'done',
        isDry: rule.effects === undefined,
        act: (access, id, input, write) => access.action(id, name, input, write),
      }),
    ),
  ];
}

/** The actions of the site. One that shows a value once is for the person who gets the value, unless the words say how staff see it. */
export function siteActionsOf({ resource: { options }, words }: Pick<Plan, 'resource' | 'words'>): Readonly<Record<string, ActionRule>> {
  const shown = words.once === undefined ? givenOnce(options) : new Set<string>();
  return Object.fromEntries(Object.entries(actionRulesOf(options, STAFF)).filter(([name]) => !shown.has(name)));
}

/** The operations that give a value once. */
export function givenOnce({ once = {} }: AnyResource['options']): ReadonlySet<string> {
  return new Set(Object.values(once).flatMap(({ on }) => on));
}

/** Those that only somebody who has logged in recently may do: the site asks for the login before it sends them. */
export function presenceOf(plan: Plan): readonly string[] {
  const { resource, words } = plan;
  const { needsPresence = [] } = words;
  const rules: readonly (readonly [string, NamedRule])[] = [
    ...Object.entries((resource.options.transitions ?? {}) as unknown as Readonly<Record<string, NamedRule>>),
    ...Object.entries(siteActionsOf(plan)),
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
  readonly act: (access: AdminAccess, id: string, input: unknown, write: AdminWrite) => Promise<ScreenRow>;
}

function namedAction(plan: Plan, name: string, rule: NamedRule, given: Words, act: Act): AdminAction {
  const { resource, words: screenWords, shape } = plan;
  const { when: _, done = act.done, fields: own, input: fixed, message, next, ...words } = given;
  const fields = own ?? (fixed === undefined ? inputFields(rule) : []);
  const noun =
    given.done === undefined
      ? ([resource.name, `${resource.name}s`] as const)
      : ([inSentence(shape.singular), inSentence(shape.plural ?? shape.label)] as const);
  const shows = screenWords.once !== undefined && givenOnce(resource.options).has(name);
  const on = words.on ?? (shows ? 'record' : 'selection');
  return {
    name,
    label: rule.summary ?? labelOf(name),
    tone: 'neutral',
    ...(act.isDry === false || on === 'record' ? {} : { dryRun: done }),
    ...(act.confirm === undefined ? {} : { confirm: act.confirm }),
    ...words,
    on,
    fields,
    async run(context, ids, sent) {
      const access = await accessOf(resource, context, screenWords);
      const input = await inputOf(rule, fields, { ...sent, ...fixed });
      const [rows, returned, once]: [ScreenRow[], unknown[], Map<string, string | null>] = [[], [], new Map()];
      const work = async (id: string): Promise<void> => {
        const write = { sent: [], returned: (value: unknown) => void returned.push(value), ...(shows ? { once } : {}) };
        rows.push(await act.act(access, id, input, write));
      };
      const result = on === 'record' ? await ofOne(ids, work) : await adminEach(context, ids, work);
      const { message: usual, ...rest } = adminDone(result, noun, done);
      const [row] = rows;
      const outcome = { message: usual, rows, returned };
      const leadsTo = next?.(outcome);
      return {
        message: message === undefined ? usual : await message(outcome, context),
        ...(leadsTo === undefined ? {} : { next: leadsTo }),
        ...(on === 'record' ? { id: ids[0] as string } : {}),
        ...(shows && row !== undefined ? secretOf(screenWords, row, once) : {}),
        ...rest,
      };
    },
  };
}

/** What the site shows once. */
export function secretOf({ once }: ScreenOptions, row: ScreenRow, values: ReadonlyMap<string, string | null>): Pick<AdminResult, 'secret'> {
  const secret = once?.(row, values) ?? null;
  return secret === null ? {} : { secret };
}

/** What is wrong with an action on one record is the response. Errors of its input are at the fields of its form. */
async function ofOne([id = '']: readonly string[], work: (id: string) => Promise<void>): Promise<EachResult> {
  try {
    await work(id);
  } catch (error) {
    if (!isKitError(error) || error.errors === undefined) throw error;
    throw itemError(error, ['body', 'fields']) ?? error;
  }
  return { done: 1, failures: [] };
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
