// Pages of the admin site, as plain data: the sections of a record's page, and the overview.

import type {
  AdminColumn,
  AdminField,
  AdminLink,
  AdminListLink,
  AdminRange,
  AdminRow,
  AdminState,
  AdminTone,
  AdminValue,
} from './shapes.ts';

/** A part of a record's page. */
export type AdminSection =
  | {
      /** The kind of the section. */
      readonly kind: 'facts';
      /** The heading of the section. */
      readonly title: string;
      /** The values to show, from top to bottom. */
      readonly columns: readonly AdminColumn[];
      /** The values, by the name of their column. */
      readonly values: AdminRow['values'];
    }
  | {
      /** The kind of the section. */
      readonly kind: 'json';
      /** The heading of the section. */
      readonly title: string;
      /** The value, shown as formatted JSON. */
      readonly value: unknown;
    }
  | {
      /** The kind of the section. */
      readonly kind: 'table';
      /** The heading of the section. */
      readonly title: string;
      /** The columns of the table, from left to right. */
      readonly columns: readonly AdminColumn[];
      /** The rows of the table, from top to bottom. */
      readonly rows: readonly (AdminRow & {
        /** Shown when the row is opened. */
        readonly details?: readonly AdminSection[];
        /** See `removes`. */
        readonly removable?: boolean;
      })[];
      /** Shown in place of the rows when the table has none. Default: `Nothing here.` */
      readonly empty?: string;
      /** On the overview: stands before the charts. */
      readonly urgent?: boolean;
      /** Where the whole list is: a resource with filters. */
      readonly more?: {
        /** The name of the resource. */
        readonly resource: string;
        /** The filters to set, by name. */
        readonly filters: Readonly<Record<string, string>>;
      };
      /** Set by the site: the rows are records of this list, and these values can be edited here. */
      readonly edits?: {
        /** The name of the list. */
        readonly resource: string;
        /** The columns with values that can be edited. */
        readonly names: readonly string[];
      };
      /** Records of another list can be created here. */
      readonly adds?: AdminSectionAdds;
      /** Rows that are `removable` are records of another list and can be deleted here. */
      readonly removes?: AdminSectionRemoves;
    }
  | {
      /** The kind of the section. */
      readonly kind: 'text';
      /** The heading of the section. */
      readonly title: string;
      /** The text of the section. */
      readonly text: string;
      /** Shows the text in a fixed-width font, with a button that copies it. Default: false. */
      readonly code?: boolean;
    }
  /** What happened and what is planned, in order. */
  | {
      /** The kind of the section. */
      readonly kind: 'timeline';
      /** The heading of the section. */
      readonly title: string;
      /** The events of the timeline, in order. */
      readonly entries: readonly AdminTimelineEntry[];
      /** Shown when the timeline has no entries. Default: nothing. */
      readonly empty?: string;
      /** As of a table. */
      readonly more?: {
        /** The name of the resource. */
        readonly resource: string;
        /** The filters to set, by name. */
        readonly filters: Readonly<Record<string, string>>;
      };
      /** Set by the site: lists of which this timeline shows the records. */
      readonly lists?: readonly AdminListLink[];
    }
  /** Field by field: the value before and after. */
  | {
      /** The kind of the section. */
      readonly kind: 'changes';
      /** The heading of the section. */
      readonly title: string;
      /** The changed fields, from top to bottom. */
      readonly rows: readonly AdminFieldChange[];
      /** Shown when no field was changed. Default: `No field was changed.` */
      readonly empty?: string;
    }
  /** `url` is of the site's own origin, else it is shown as a link. */
  | {
      /** The kind of the section. */
      readonly kind: 'image';
      /** The heading of the section. */
      readonly title: string;
      /** The URL of the image. */
      readonly url: string;
      /** A description of the image for screen readers, or the text of the link. */
      readonly text: string;
    }
  /** A form that says why the signature of a webhook is rejected. Everything happens in the browser. */
  | {
      /** The kind of the section. */
      readonly kind: 'signature_check';
      /** The heading of the section. */
      readonly title: string;
    }
  | {
      /** The kind of the section. */
      readonly kind: 'chart';
      /** The chart to draw. */
      readonly chart: AdminChart;
    };

export interface AdminSectionAdds {
  /** The name of the other list. */
  readonly resource: string;
  /** Of the button and the form: `Grant access`. */
  readonly label: string;
  /** The fields of the form. */
  readonly fields: readonly AdminField[];
  /** Sent along with the fields: what the section is about. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Set by the site: why this staff member cannot create one; shown at the disabled button. */
  readonly refused?: string;
}

export interface AdminSectionRemoves {
  /** The name of the other list. */
  readonly resource: string;
  /** The noun for one record of that list: `grant`. */
  readonly singular: string;
  /** Of the button: `Revoke`. */
  readonly label: string;
  /** Shown before it is done. */
  readonly removal: string;
  /** As of {@link AdminSectionAdds}. */
  readonly refused?: string;
}

export interface AdminTimelineEntry {
  /** ISO 8601; null: not known yet. */
  readonly at: string | null;
  /** The event in a few words: `Order paid`. */
  readonly title: string;
  /** A sentence below the title. */
  readonly text?: string;
  /** The meaning of the event, which sets the color of the entry. */
  readonly tone: AdminTone;
  /** It has not happened yet. */
  readonly planned?: boolean;
  /** Who did it; absent: a program. */
  readonly actor?: string;
  /** Where more is said about it. */
  readonly link?: AdminLink;
  /** Of the request that it belongs to: entries of one request stand together. */
  readonly request_id?: string;
  /** What it did to the record that the timeline is of. */
  readonly changes?: readonly AdminFieldChange[];
  /** Of the audit entry: with what the actor was authenticated, where that is a key or an agent: `API key ci`. */
  readonly via?: string;
  /** It is about another record. */
  readonly aside?: boolean;
  /** Set by the site: what else the request did. */
  readonly folded?: readonly AdminTimelineEntry[];
}

/** Absent values were not there: a field that is new has no `before`. Lists are compared item by item. */
export interface AdminFieldChange {
  /** The name of the field. */
  readonly name: string;
  /** What people call the field. Default: the name. */
  readonly label?: string;
  /** The value before the change. */
  readonly before?: AdminValue;
  /** The value after the change. */
  readonly after?: AdminValue;
  /** The value before, as the form of the record takes it. Absent: this staff member cannot restore it. */
  readonly restore?: unknown;
}

export interface AdminRecord extends AdminRow {
  readonly state?: AdminState;
  /** What an operator has to know first, above everything else. */
  readonly notice?: AdminNotice;
  readonly sections: readonly AdminSection[];
  /** Of its charts; people can choose another one. Absent: the charts have no range to choose. */
  readonly range?: AdminRange;
  /** Absent: this record cannot be edited. `values` fill the fields. */
  readonly form?: {
    readonly fields: readonly AdminField[];
    readonly values: Readonly<Record<string, unknown>>;
    /** Sent back as `if-match: "3"`: a record that was changed meanwhile is then not overwritten. */
    readonly version?: number;
    /** Set by the site: what `if-match` takes, the version or, without one, a digest of the values. */
    readonly tag?: string;
  };
  /** Why this staff member cannot edit or delete the record, where others can or where it is a matter of its state. */
  readonly refused?: { readonly edit?: string; readonly remove?: string };
  /** Names of the resource's actions that make sense on it now. */
  readonly actions: readonly string[];
  /** By the name of an action: why it cannot be run on this record now. */
  readonly unavailable?: Readonly<Record<string, string>>;
  /** By the name of an action: what its fields begin with. */
  readonly defaults?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly removable: boolean;
  /** Whom the record is about: an administrator can look at the application as this user. The site leaves it out where that is not possible. */
  readonly view?: {
    /** The id of the user. */
    readonly user: string;
    /** The tenant; null: it is chosen. */
    readonly tenant: string | null;
    /** Set by the site: what is asked before it begins. */
    readonly fields?: readonly AdminField[];
  };
}

export interface AdminNotice {
  /** The meaning of the notice, which sets its color and icon. */
  readonly tone: AdminTone;
  /** The text of the notice. */
  readonly text: string;
  /** Where to go on; stands after the text. */
  readonly link?: AdminLink;
}

export interface AdminTile {
  readonly label: string;
  readonly value: number | string | null;
  readonly unit?: 'count' | 'percent' | 'ms' | 'age_ms';
  readonly tone: AdminTone;
  readonly hint?: string;
  readonly link?: { readonly resource: string; readonly filters: Readonly<Record<string, string>> };
}

export interface AdminChart {
  /** The heading of the chart. */
  readonly title: string;
  /** The form of the chart: a bar for each bucket, or a line for each series. */
  readonly kind: 'bars' | 'lines';
  /** The unit of all values. */
  readonly unit: 'count' | 'percent' | 'ms';
  /** Start of each bucket, ISO 8601. */
  readonly buckets: readonly string[];
  /** The data series of the chart. */
  readonly series: readonly {
    /** The name of the series in the legend. */
    readonly name: string;
    /** The color of the series. */
    readonly tone: AdminTone;
    /** One value for each bucket; null: no value. */
    readonly values: readonly (number | null)[];
  }[];
  /** Shown in place of a chart without data. Default: `No data in this period.` */
  readonly empty?: string;
}

/** What a module shows on the overview, for a range of time. */
export interface AdminOverview {
  readonly title: string;
  readonly tiles: readonly AdminTile[];
  readonly charts: readonly AdminChart[];
  readonly tables: readonly Extract<AdminSection, { kind: 'table' }>[];
  /** What somebody does who begins; shown before everything else until all of it is done. */
  readonly steps?: readonly AdminStep[];
}

export interface AdminStep {
  /** What to do: `Create an API key`. */
  readonly title: string;
  /** How, in a sentence. */
  readonly text: string;
  readonly isDone: boolean;
  /** Where it is done: a list, or the form of a new record of it. */
  readonly at: { readonly resource: string; readonly page: 'list' | 'create' };
}
