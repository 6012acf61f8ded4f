// What the admin site draws, as plain data: the browser application knows these shapes and nothing about any module.

/** How a value matters: colour and icon follow from it. */
export type AdminTone = 'neutral' | 'good' | 'warning' | 'bad' | 'info';

/** How a value is drawn. `device` is how a browser or program names itself. */
export type AdminCellKind =
  | 'text'
  | 'code'
  | 'number'
  | 'bool'
  | 'time'
  | 'date'
  | 'duration'
  | 'progress'
  | 'state'
  | 'chips'
  | 'link'
  | 'url'
  | 'device'
  | 'json';

/** A value with a tone, such as a state. */
export interface AdminState {
  /** The text that is shown: `paid`. */
  readonly value: string;
  /** The meaning of the state, which sets its color. */
  readonly tone: AdminTone;
  /** Shown when pointed at: why it is so, or what to do. */
  readonly hint?: string;
}

/** A value that leads to a record of this or another resource. */
export interface AdminLink {
  /** The name of the resource that has the record. */
  readonly resource: string;
  /** The id of the record. */
  readonly id: string;
  /** The text of the link. */
  readonly text: string;
}

/** Leads to a list: what a number or an alert counts. */
export interface AdminListLink {
  /** The name of the resource. */
  readonly resource: string;
  /** The filters to set, by name. */
  readonly filters: Readonly<Record<string, string>>;
  /** The text of the link. */
  readonly text: string;
}

/** `time` is ISO 8601, `duration` milliseconds, `progress` percent, `chips` an array of strings; null and absent are drawn as a dash. */
export type AdminValue = string | number | boolean | null | readonly string[] | AdminState | AdminLink | AdminListLink | object;

export interface AdminColumn {
  /** The field of the rows that the column shows. */
  readonly name: string;
  /** The heading. */
  readonly label: string;
  /** How values are shown: as text, a number, a time, a state, … */
  readonly kind: AdminCellKind;
  /** The list can be ordered by it. */
  readonly sortable?: boolean;
  /** Shown at the heading: which records are put in order, or why the list cannot be ordered by it. */
  readonly sortNote?: string;
  /** Left out on narrow screens. */
  readonly secondary?: boolean;
}

export interface AdminRow {
  /** The id of the record. */
  readonly id: string;
  /** What people call it: in confirmations, titles and messages. */
  readonly title: string;
  /** The values of the row, by the name of their column. */
  readonly values: Readonly<Record<string, AdminValue | undefined>>;
}

export interface AdminChoice {
  /** The value that is sent. */
  readonly value: string;
  /** The text that is shown. */
  readonly label: string;
}

/**
 * How a filter compares: `in` takes choices with commas between, `empty` takes `yes` or `no`. It travels as `filter.<name>` for `is`, as
 * `filter.<name>.<operator>` for the others.
 */
export type AdminFilterOperator = 'is' | 'not' | 'in' | 'contains' | 'empty';

/**
 * `select` offers choices, `text` is matched exactly unless `operators` say more, `number`, `time` and `date` are a range with `ends`, or one
 * bound as the label says; `reference` is the id of a record that is searched for while typing.
 */
export interface AdminFilter {
  /** The name of the filter in the URL. */
  readonly name: string;
  /** Shown beside the input. */
  readonly label: string;
  /** The input of the filter. */
  readonly kind: 'select' | 'text' | 'number' | 'time' | 'date' | 'reference';
  /** Default: `is`; of a filter with `ends`: none. */
  readonly operators?: readonly AdminFilterOperator[];
  /** Of `number`, `time` and `date`: the names that the lower and the upper bound travel under, in place of the filter's own. */
  readonly ends?: readonly [from: string, to: string];
  /** Of `select`: the values to choose from. */
  readonly choices?: readonly AdminChoice[];
  /** Of `text`: what to offer while typing; anything else may be typed too. */
  readonly suggestions?: readonly string[];
  /** Of `reference`: the `target_type`, the table or the list of what is referred to. A site without such a list shows a text field. */
  readonly of?: string;
  /** Of `reference`, set by the site: the list to search in. */
  readonly resource?: string;
}

/** A text for one record and for several: `{ one: 'It stops working.', many: 'They stop working.' }`. */
export interface AdminWords {
  /** For one record: `Revoke this key?`. */
  readonly one: string;
  /** For a selection: `Revoke these keys?`. */
  readonly many: string;
}

/** A field of a form. Its value travels under its name; an emptied `nullable` field travels as null. */
export interface AdminField {
  /** The name that the value is sent under. */
  readonly name: string;
  /** Shown above the input. */
  readonly label: string;
  /** The input: a line of text, a number, a list of choices, … */
  readonly kind:
    | 'text'
    | 'long_text'
    | 'number'
    | 'bool'
    | 'time'
    | 'date'
    | 'select'
    | 'strings'
    | 'json'
    | 'password'
    | 'file'
    | 'reference';
  /** The form cannot be sent without a value. Default: false. */
  readonly required?: boolean;
  /** The field can be empty, which is stored as null. Default: false. */
  readonly nullable?: boolean;
  /** A sentence below the input. */
  readonly help?: string;
  /** Shown in the empty input. */
  readonly placeholder?: string;
  /** Of `select`: the values to choose from. */
  readonly choices?: readonly AdminChoice[];
  /** Of `strings` and `text`: what to offer while typing; anything else may be typed too. */
  readonly suggestions?: readonly string[];
  /** Most characters of a text. */
  readonly maxLength?: number;
  /** Holds a credential: the browser does not store what was typed. Passwords are so without saying it. */
  readonly sensitive?: boolean;
  /** Of `file`: where the page sends it. The value is the id of the upload. */
  readonly file?: AdminFileTarget;
  /** Of `reference`: as in {@link AdminFilter}. */
  readonly of?: string;
  /** Of `reference`, set by the site: the list to search in. */
  readonly resource?: string;
  /** Why this member of staff cannot write it: the form shows the value, disabled, with the reason. */
  readonly refused?: string;
}

/** Where a form sends files, and what is accepted there. */
export interface AdminFileTarget {
  /** The path of a mounted controller that takes uploads. */
  readonly endpoint: string;
  /** Media types that are accepted. */
  readonly contentTypes: readonly string[];
  /** Most bytes of a file. */
  readonly bytesMax: number;
}

export type AdminFileFormat = 'csv' | 'jsonl';

export interface AdminActionShape {
  /** Part of the path of the action: `revoke`. */
  readonly name: string;
  /** The text of the button: `Revoke`; `{ one, many }` where it differs for a selection. */
  readonly label: string | AdminWords;
  /** `bad` for what destroys or cannot be undone. */
  readonly tone: 'neutral' | 'bad';
  /** One record, or a selection too. */
  readonly on: 'record' | 'selection';
  /** Confirmed once before it runs; the site adds which records it affects. */
  readonly confirm?: string | AdminWords;
  /** The text of the confirming button. Default: the label. */
  readonly confirmLabel?: string;
  /** Of the button that changes nothing: `Keep running` beside `Cancel the job`. Default: `Cancel`. */
  readonly dismissLabel?: string;
  /** Asked for in the dialog before the action runs. */
  readonly fields?: readonly AdminField[];
  /** It sets fields to the same value on every record: people choose which; those that are not chosen stay as they are. */
  readonly sets?: boolean;
  /** Why this member of staff may not run it; the site shows it at the disabled button. */
  readonly refused?: string;
  /** The confirmation asks the server what the action would do, with these records and fields. */
  readonly previews?: boolean;
  /** The preview is a dry run: `paid`, as in `5 orders will be paid`. */
  readonly dryRun?: string;
}

/** Something that people often do, for the palette: the list with these filters, and the dialog of the action on what they find. */
export interface AdminShortcut {
  /** Shown in the command palette: `Retry failed deliveries`. */
  readonly label: string;
  /** The filters to set, by name. */
  readonly filters: Readonly<Record<string, string>>;
  /** The name of an action on a selection. Absent: only the list is shown. */
  readonly action?: string;
}

/** The icons that a list can have. */
export type AdminIcon = (typeof ADMIN_ICONS)[number];
export const ADMIN_ICONS = [
  'key',
  'endpoint',
  'delivery',
  'event',
  'user',
  'group',
  'tenant',
  'shield',
  'mail',
  'job',
  'failure',
  'clock',
  'request',
  'usage',
  'file',
  'audit',
  'table',
] as const;

export interface AdminResourceShape {
  /** Its part of the address: `api-keys`. */
  readonly name: string;
  /** In the navigation: `API keys`. */
  readonly label: string;
  /** What one record is called: `API key`. */
  readonly singular: string;
  /** What several are called. Default: the label. */
  readonly plural?: string;
  /** The heading it stands under in the navigation. */
  readonly group: string;
  /** A sentence below the heading of the list. */
  readonly description?: string;
  /** One of the icons of the site. Default: the first letters of the label. */
  readonly icon?: AdminIcon;
  /** Shown where there are no records at all: what to do, and the list to go to. Default: that there are none. */
  readonly empty?: {
    /** A sentence. */
    readonly text: string;
    /** The name of the list. */
    readonly resource?: string;
    /** The text of the link. */
    readonly label?: string;
  };
  /** The columns of the list, from left to right. */
  readonly columns: readonly AdminColumn[];
  /** The filters above the list. */
  readonly filters: readonly AdminFilter[];
  /** What the search looks at, for the placeholder: `name, prefix or owner`. Absent: no search. */
  readonly searches?: string;
  /** The list follows changes by itself. */
  readonly live?: boolean;
  /** The site tells when records change: `api/lists/:name/news`. */
  readonly follows?: boolean;
  /** Set by the site: no stream reports its changes, and reading again leaves no trace, so pages look for changes themselves. */
  readonly polls?: boolean;
  /** Set by the site: the audit log has every reading of a record, so pages read one only when somebody asks for it. */
  readonly recordsReads?: boolean;
  /** What people often do here, for the command palette. */
  readonly shortcuts?: readonly AdminShortcut[];
  /** The form of a new record, or why there is none. */
  readonly creation:
    | {
        /** The fields of the form. */
        readonly fields: readonly AdminField[];
      }
    | {
        /** Why records cannot be created here. */
        readonly refused: string;
        /** Set by the site: others may create records here. */
        readonly byRole?: boolean;
      };
  /** The form of an existing record; the record itself may close it (`AdminRecord.form`). */
  readonly editable: boolean;
  /** Columns whose values can be edited where they stand. */
  readonly edits?: readonly string[];
  /** Records can be deleted. */
  readonly removable: boolean;
  /** The rows of the list can be downloaded, as the filters narrow it. */
  readonly exports?: readonly AdminFileFormat[];
  /** Records can be made from a file. `by`: the column that finds the records which a file may change. */
  readonly imports?: {
    /** The formats that are read. */
    readonly formats: readonly AdminFileFormat[];
    /** The column that finds existing records, which a file may then change. Default: every row creates a record. */
    readonly by?: string;
    /** The columns that are read; others are ignored. */
    readonly columns: readonly string[];
  };
  /** Shown before a record is removed: what is removed with it, and whether it can be restored. */
  readonly removal?: string;
  readonly actions: readonly AdminActionShape[];
}

/** A page of the site that is not a list: its sections are read with `api/pages/:name`. */
export interface AdminPageShape extends Pick<AdminResourceShape, 'name' | 'label' | 'group' | 'description' | 'icon'> {
  /** Where it is, relative to the site: `reference`. Default: the site draws its sections. */
  readonly href?: string;
}

/** Largest count of a list: an exact count of millions would cost more than the list. */
export const ADMIN_COUNT_MAX = 10_000;

export interface AdminPage {
  readonly items: readonly AdminRow[];
  /** Null: more than {@link ADMIN_COUNT_MAX}. */
  readonly count: number | null;
  /** There may be more than `count`: a search was cut. */
  readonly atLeast?: boolean;
  /** To ask for the page after this one; null at the end. */
  readonly next: string | null;
  /** The search looked at this many records, the newest; absent: at all. */
  readonly searched?: number;
}

/** A record that an action could not be done to. */
export interface AdminFailure {
  /** The id of the record. */
  readonly id: string;
  /** Why not, as a sentence for people. */
  readonly message: string;
}

/** What an action would do. */
export interface AdminPreview {
  readonly message: string;
  readonly tone: AdminTone;
  /** Of a dry run: what the action says besides. */
  readonly note?: string;
  /** Of a dry run: how many records can be done, and why the others cannot. */
  readonly able?: number;
  readonly failures?: readonly AdminFailure[];
}

/** A secret that is shown once, with a way to copy it. */
export interface AdminSecret {
  /** What it is: `API key`. */
  readonly label: string;
  /** Shown once, with a button that copies it. */
  readonly value: string;
  /** What to do with it, in a sentence. */
  readonly note: string;
}

export interface AdminResult {
  /** One sentence on what happened. */
  readonly message: string;
  readonly secret?: AdminSecret;
  /** The record to show next. */
  readonly id?: string;
  /** Of an action: the record of another list to show next. */
  readonly next?: { readonly resource: string; readonly id: string };
  /** The action that takes it back, on these records. */
  readonly undo?: { readonly action: string; readonly ids: readonly string[] };
  /** Work is left: the site sends these ids next, in place of the ones that it sent. */
  readonly rest?: readonly string[];
  /** Of a selection: what could not be done, and why. */
  readonly failures?: readonly AdminFailure[];
}

/** The time until now, or a time of its own: `2026-03-01T08:00:00.000Z/2026-03-01T09:30:00.000Z`. */
export type AdminRange = '1h' | '24h' | '7d' | '30d' | `${string}/${string}`;
