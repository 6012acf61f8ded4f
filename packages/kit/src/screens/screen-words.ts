import type { AdminAction, AdminContext, AdminResource } from '../app/admin/declaration.ts';
import type { PortalChart } from '../app/admin/portal-page.ts';
import type { AdminNotice, AdminRecord, AdminSection } from '../app/admin/sections.ts';
import {
  ADMIN_ICONS,
  type AdminColumn,
  type AdminField,
  type AdminFilter,
  type AdminLink,
  type AdminRange,
  type AdminResourceShape,
  type AdminResult,
  type AdminState,
  type AdminTone,
  type AdminValue,
} from '../app/admin/shapes.ts';
import type { Where } from '../db/sql/where/where.ts';
import type { OptionRules } from '../options/read-options.ts';
import {
  anything,
  aFunction,
  either,
  filledText,
  flag,
  guard,
  isMembers,
  listOf,
  objectWith,
  oneOf,
  recordOf,
  rule,
  text,
} from '../options/value-rule.ts';

export type ScreenRow = Readonly<Record<string, unknown>>;

/** A column with the words that its model does not have. */
export type ScreenColumn = string | (Pick<AdminColumn, 'name'> & Partial<AdminColumn>);

/** A column of a record's page. */
export type ScreenFact =
  | string
  | (Exclude<ScreenColumn, string> & {
      /** True: the page of a record without a value leaves it out. */
      readonly ifSet?: true;
    });

type IsIndexed = boolean | 'alone';

/** A filter of a column by another name, or one that the model does not have. */
export type ScreenFilter =
  | string
  | (Partial<Omit<AdminFilter, 'name'>> & {
      /** The column that it compares. */
      readonly column: string;
      /** Default: the name of the column. */
      readonly name?: string;
    })
  | (AdminFilter & {
      /** The column whose filter it is: no other filter is derived for this column. */
      readonly column?: string;
      /** The rows that it leaves. `end`: of a filter with two `ends`, which of them the value is. */
      readonly where: (value: string, context: AdminContext, end: 'from' | 'to' | 'is') => Where | Promise<Where>;
      /**
       * An index finds them, or those of this value. Without it a large table is searched in its newest rows. `alone`: an index has them in the order of
       * the list, which helps where no other filter is set.
       */
      readonly isIndexed?: IsIndexed | ((value: string, where: Where) => IsIndexed);
    });

/** The words of a transition or an action of the resource. */
export interface ScreenActionWords<R = ScreenRow> extends Partial<
  Pick<AdminAction, 'label' | 'tone' | 'confirm' | 'confirmLabel' | 'dismissLabel' | 'reason' | 'needs' | 'fields' | 'on' | 'preview'>
> {
  /** The name of the transition or action in the resource. */
  readonly name: string;
  /** The records afterwards: `paid`, as in `3 orders paid`. */
  readonly done?: string;
  /** Records that it makes sense on. Default: all. */
  readonly when?: ScreenAction<R>['when'];
  /** Members of the input that are the same each time, and not asked for. */
  readonly input?: ScreenRow;
  /** The message afterwards, from the rows and from what the action returned for each. Default: `3 orders paid.` */
  readonly message?: (done: ActionsDone<R>, context: AdminContext) => string | Promise<string>;
  /** The record of another list that shows what comes of it: the site goes there. */
  readonly next?: (done: ActionsDone<R>) => AdminLink | undefined;
}

/** What an action did. */
export interface ActionsDone<R = ScreenRow> {
  /** The default. */
  readonly message: string;
  /** The rows that it was done for, as they are now. */
  readonly rows: readonly R[];
  /** What the code of the action returned, for each of them. */
  readonly returned: readonly unknown[];
}

/** An action with a function of its own. */
export interface ScreenAction<R = ScreenRow> extends AdminAction {
  /** Records that it makes sense on. Default: all. */
  readonly when?: (row: R, context: AdminContext) => boolean | Promise<boolean>;
}

/** What a part of a record's page is made of. */
export interface ScreenSectionContext<R = ScreenRow> {
  readonly context: AdminContext;
  readonly id: string;
  /** Whole, as code has it. */
  readonly row: R;
  /** Of the charts of the page. */
  readonly range: AdminRange;
}

type Sections = AdminSection | readonly AdminSection[] | null;

/** A part of a record's page: what {@link section} and {@link chart} return. */
export interface ScreenSection {
  /** Returns the content of the part; null: nothing is shown. */
  readonly load: (of: ScreenSectionContext<never>) => Sections | Promise<Sections>;
  /** The period that it covers at first, where staff can choose one. */
  readonly range?: AdminRange;
}

/** Numbers of the records on the overview: names of the `stats` that a controller of the resource declares. */
export interface ScreenOverview {
  /** The column with the time, one of `stats.by`: what happened in the range that people choose. */
  readonly time: string;
  /** Each is a figure, compared with the period before: names of `stats.metrics`. */
  readonly metrics: readonly string[];
  /** Bars or lines over the range. */
  readonly charts?: readonly Omit<PortalChart, 'time' | 'since'>[];
  /** The metrics by the values of a column, the largest first. */
  readonly tables?: readonly {
    /** The heading. */
    readonly title: string;
    /** One of `stats.by`. */
    readonly by: string;
  }[];
}

/** A part of the page of a record that its columns do not show. */
export function section<R = ScreenRow>(load: (of: ScreenSectionContext<R>) => Sections | Promise<Sections>): ScreenSection {
  return { load };
}

/** As {@link section}, for a period that people choose; `range` is the first. */
export function chart<R = ScreenRow>(
  load: (of: ScreenSectionContext<R>) => Sections | Promise<Sections>,
  range: AdminRange = '30d',
): ScreenSection {
  return { load, range };
}

type Tone = AdminTone | AdminState;

/** The words of a list of the admin site. Everything else follows from its resource. */
export interface ScreenOptions<R = ScreenRow>
  extends
    Pick<AdminResource, 'needsPresence' | 'related' | 'isRestricted' | 'suggestions' | 'auditedAs' | 'refers'>,
    Partial<Pick<AdminResourceShape, 'icon' | 'plural' | 'live' | 'shortcuts' | 'removal' | 'searches'>> {
  /** In the navigation. Default: the table's name in words. */
  readonly label?: string;
  /** What one record is called. Default: the label. */
  readonly singular?: string;
  /** Its part of the address. Default: the table's name with dashes. */
  readonly name?: string;
  /** The heading in the navigation. Default: `Data`. */
  readonly group?: string;
  /** A sentence above the list. */
  readonly description?: string;
  /** The column that people call a record by, or a cell that `cells` or `load` makes. */
  readonly title?: string;
  /**
   * The columns of the list, and computed fields of the resource. Default: the first eight columns. A record's page shows all that are not
   * sensitive.
   */
  readonly columns?: readonly ScreenColumn[];
  /** The columns of a record's page, after those of the list. Default: all. */
  readonly facts?: readonly ScreenFact[];
  /** Text columns that are searched. Default: all of at most 255 characters. */
  readonly search?: readonly string[];
  /** Values that a search finds, too, by columns with an index: the ids of owners whose name contains the text. */
  readonly alsoFinds?: (text: string, context: AdminContext) => Promise<Readonly<Record<string, readonly unknown[]>>>;
  /** Columns the list can be filtered by; the first three stand beside the search. Default: enums and booleans first, then every other. */
  readonly filters?: readonly ScreenFilter[];
  /** By column and value: the color of a state, or its text, color and hint. Default: by what the word means in English. */
  readonly tones?: Readonly<Record<string, Readonly<Record<string, Tone>>>>;
  /** More values of a record's page, by the names of `facts` that have a `kind`. */
  readonly values?: (row: R, context: AdminContext) => Readonly<Record<string, AdminValue>> | Promise<Readonly<Record<string, AdminValue>>>;
  /** By column: how a value is shown, where it is not the value itself. Null: a dash. */
  readonly cells?: Readonly<Record<string, (row: R, context: AdminContext) => AdminValue>>;
  /**
   * More values of the rows of a page, in their order, which have to be read: one statement for all. A column with such a name shows the value as it is;
   * `cells`, and on the page of a record `values`, `notice`, `sections` and the `when` of actions, get it with the row.
   */
  readonly load?: (items: readonly R[], context: AdminContext) => Promise<readonly object[]>;
  /** The unique column that the site addresses records by. Default: the key. */
  readonly lookup?: string;
  /** The column or computed field whose value stands beside the title of a record's page. */
  readonly state?: string;
  /** What an operator has to know first about a record. */
  readonly notice?: (row: R, context: AdminContext) => AdminNotice | null | Promise<AdminNotice | null>;
  /** Whom the record is about, and in which tenant (null: it is chosen): with `admin({ viewAs: true })` its page has the button `View as`. Null: about nobody. */
  readonly viewAs?: (row: R) => Pick<NonNullable<AdminRecord['view']>, 'user' | 'tenant'> | null;
  /** Figures, charts and tables on the overview, from the statistics of the resource. */
  readonly overview?: ScreenOverview;
  /** More parts of a record's page: `section(load)`, `chart(load)`. */
  readonly sections?: readonly ScreenSection[];
  /** Columns that may be edited. Default: all that are writable. */
  readonly edit?: readonly string[];
  /** Columns that the form of a new record has. Default: those that may be edited. */
  readonly create?: readonly string[];
  /** Records that may be edited. Default: all. */
  readonly editable?: (row: R, context: AdminContext) => boolean;
  /** By column: the words of its form field. */
  readonly fields?: Readonly<Record<string, Partial<Omit<AdminField, 'name'>>>>;
  /** By the name of an `uploadRef()` column: the path of the UploadController its files are sent to. Default: the first one mounted. */
  readonly files?: Readonly<Record<string, string>>;
  /** Buttons for a record, or for the selected records of the list: the words of a transition or action of the resource, or an action of its own. */
  readonly actions?: readonly (ScreenAction<R> | ScreenActionWords<R>)[];
  /** Why records are not created here, or a form that creates them by a function of its own. */
  readonly creation?:
    | {
        /** The reason why records cannot be created here. */
        readonly refused: string;
      }
    | ScreenCreation;
  /** False: records cannot be removed here. A function decides it for a record. */
  readonly removable?: boolean | ((row: R, context: AdminContext) => boolean);
  /** The forms of a resource with `bodies`, whose clients send more or other than its columns. */
  readonly forms?: ScreenForms<R>;
  /** By action: what its form begins with on the page of a record. */
  readonly defaults?: (row: R, context: AdminContext) => Promise<NonNullable<AdminRecord['defaults']>>;
  /**
   * How the site shows the value that the resource gives once (`once`) to the staff member who creates a record, or runs such an action. Without it the
   * site offers neither. Null: there is nothing to show this time, because the value is sent by mail.
   */
  readonly once?: (row: R, values: ReadonlyMap<string, string | null>) => NonNullable<AdminResult['secret']> | null;
  /** False: the list cannot be downloaded. */
  readonly exports?: false;
  /** False: records are not created from files. */
  readonly imports?: false;
  /** False: the fields of several records are not set together. */
  readonly bulkEdit?: false;
  /** Nothing can be created, edited or removed. */
  readonly readOnly?: boolean;
  /** Reading a record is recorded in the audit log. */
  readonly auditReads?: boolean;
  /** The alias of the database. Default: that of the resource, or `default`. */
  readonly using?: string;
}

/** Forms, and the body that they make. Rules about the values are those of the resource. */
export interface ScreenForms<R = ScreenRow> {
  /** The fields of the form of a new record. */
  readonly create: readonly AdminField[];
  /** The fields of the form of a record. */
  readonly edit: readonly AdminField[];
  /** The values that the form of a record begins with. */
  readonly values: (row: R) => ScreenRow;
  /** The input of the resource's hook, from the fields that are given. `row`: null for a new record. */
  readonly input: (fields: ScreenRow, row: R | null, context: AdminContext) => ScreenRow | Promise<ScreenRow>;
}

/** A form whose fields are not the columns of the model. */
export interface ScreenCreation {
  /** The fields of the form. */
  readonly fields: readonly AdminField[];
  /** As in an `AdminResource`. */
  readonly validate?: (context: AdminContext, fields: ScreenRow) => Promise<void>;
  /** Creates the record from the values of the form, by the name of their field. */
  readonly create: (context: AdminContext, fields: ScreenRow) => Promise<AdminResult>;
}

const TONES: readonly unknown[] = ['neutral', 'good', 'warning', 'bad', 'info'] satisfies readonly AdminTone[];

function isTone(value: unknown): boolean {
  return TONES.includes(value) || (isMembers(value) && typeof value['value'] === 'string' && TONES.includes(value['tone']));
}

function isTones(value: unknown): boolean {
  return isMembers(value) && Object.values(value).every((each) => isMembers(each) && Object.values(each).every(isTone));
}

function isPathByColumn(value: unknown): boolean {
  return isMembers(value) && Object.values(value).every((path) => typeof path === 'string' && path.startsWith('/'));
}

const named = rule('a name, or an object with one: { name, label }', (value) => isNamed(value, 'name'));
const filter = rule(
  'a column, { column, label } or { name, label, kind, where }',
  (value) => isNamed(value, 'column') || isNamed(value, 'name'),
);
const action = rule(
  'an action { name, label, run }, or the words of one of the resource: { name, label }',
  (value) => isMembers(value) && isNamed(value, 'name'),
);

function isNamed(value: unknown, member: string): boolean {
  const name = isMembers(value) ? value[member] : value;
  return typeof name === 'string' && name.trim() !== '';
}

const creation = rule(
  '{ refused: "why" } or { fields: [ … ], create }',
  (value) =>
    isMembers(value) && (typeof value['refused'] === 'string' || (Array.isArray(value['fields']) && typeof value['create'] === 'function')),
);

export const screenRules: OptionRules<ScreenOptions> = {
  label: filledText,
  singular: filledText,
  plural: filledText,
  name: filledText,
  group: filledText,
  icon: oneOf(...ADMIN_ICONS),
  description: text,
  auditedAs: filledText,
  title: filledText,
  columns: guard(listOf(named)),
  facts: guard(listOf(named)),
  search: listOf(filledText),
  alsoFinds: aFunction,
  searches: filledText,
  filters: listOf(filter),
  tones: rule('tones by column and value: { status: { paid: "good" } }', isTones),
  cells: recordOf(aFunction),
  load: aFunction,
  lookup: filledText,
  state: filledText,
  notice: aFunction,
  viewAs: aFunction,
  sections: listOf(objectWith('what section() or chart() returns', 'load')),
  overview: guard(
    rule('{ time, metrics: [ … ] }', (value) => isMembers(value) && isNamed(value, 'time') && Array.isArray(value['metrics'])),
  ),
  edit: guard(listOf(filledText)),
  create: guard(listOf(filledText)),
  editable: guard(aFunction),
  fields: recordOf(rule('the words of a field: { label, help }', isMembers)),
  files: rule('paths of mounted UploadControllers by column: { invoice_id: "/v1/invoices" }', isPathByColumn),
  actions: listOf(action),
  creation: guard(creation),
  forms: guard(objectWith('forms: { create, edit, values, input }', 'values', 'input')),
  defaults: aFunction,
  once: guard(aFunction),
  removable: guard(either('true, false, or a function', flag, aFunction)),
  exports: guard(oneOf(false)),
  imports: guard(oneOf(false)),
  bulkEdit: guard(oneOf(false)),
  values: aFunction,
  removal: filledText,
  readOnly: guard(flag),
  auditReads: guard(flag),
  needsPresence: guard(listOf(filledText)),
  related: listOf(rule('{ to, filter }', (value) => isMembers(value) && isNamed(value, 'to') && isNamed(value, 'filter'))),
  refers: recordOf(filledText),
  isRestricted: guard(flag),
  live: flag,
  shortcuts: listOf(anything),
  suggestions: aFunction,
  using: filledText,
};
