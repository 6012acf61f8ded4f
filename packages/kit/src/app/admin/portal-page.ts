import type { Db } from '../../db/engine/db.ts';
import type { AdminContext } from './declaration.ts';
import type { AdminChart, AdminSection } from './sections.ts';
import type { AdminColumn, AdminPageShape, AdminResourceShape, AdminState, AdminTone, AdminValue } from './shapes.ts';

/**
 * A page of the developers' portal: words for the operations that the app has mounted for a resource. What may be seen and done is what these operations
 * allow; where none are mounted, there is no page.
 */
export interface PortalPage extends Pick<
  AdminResourceShape,
  'name' | 'label' | 'singular' | 'group' | 'description' | 'icon' | 'live' | 'removal' | 'empty'
> {
  /** The name of the CRUD resource whose controller it shows. */
  readonly resource: string;
  /** Of records below another one, such as the deliveries of an endpoint. */
  readonly below?: {
    /** The last part of their path. */
    readonly path: string;
    /** The page with the others. */
    readonly page: string;
    /** What the filter by one of these is called. */
    readonly label: string;
  };
  /** The last part of the path of another list of the controller: `event-types`. Where a record of it has no operation, the list has all of them at once. */
  readonly collection?: string;
  /** The field that tells its records apart. Default: `id`. */
  readonly key?: string;
  /** The field that people call a record by. */
  readonly title: string;
  /** Fields of the list, with what their names and schemas do not say. */
  readonly columns: readonly (string | PortalColumn)[];
  /** Parameters of the list. */
  readonly filters?: readonly {
    /** The parameter of the list. */
    readonly name: string;
    /** What people read. */
    readonly label: string;
    /** The page whose records it takes the id of. */
    readonly of?: string;
    /** Other values may be typed, too. Default: false. */
    readonly isOpen?: boolean;
    /** Its records are about one moment: they get no charts. Default: false. */
    readonly isMoment?: boolean;
  }[];
  /** By field and value: what it means. */
  readonly states?: Readonly<Record<string, Readonly<Record<string, AdminState>>>>;
  /** By column: what is shown in place of the field. */
  readonly cells?: Readonly<Record<string, (item: Readonly<Record<string, unknown>>, context: AdminContext) => AdminValue>>;
  /** By the last part of their path: `rotate`. */
  readonly actions?: Readonly<Record<string, PortalAction>>;
  /** Operations on a record of another page, which is chosen: `Subscribe an endpoint`. */
  readonly borrows?: Readonly<Record<string, PortalBorrowedAction>>;
  /** Where records come from that nobody makes here, in a sentence. */
  readonly madeBy?: string;
  /** The value that a create or an action shows once. */
  readonly secret?: {
    /** What it is called. */
    readonly label: string;
    /** What to do with it now. */
    readonly note: string;
  };
  /** Fields that the controller takes from nobody here. */
  omits?(controller: object): readonly string[];
  /** By field: what to offer while typing. */
  suggestions?(asked: {
    readonly db: Db;
    readonly controller: object;
    readonly isStaff: boolean;
  }): Readonly<Record<string, readonly string[]>>;
  /** Figures of the overview: how many records there are with these parameters. */
  readonly tiles?: readonly {
    /** What is counted. */
    readonly label: string;
    /** Of the list. */
    readonly parameters: Readonly<Record<string, string>>;
    /** The parameter that takes the begin of the range. */
    readonly since?: string;
    /** A parameter that takes a time to come. */
    readonly ahead?: {
      /** Its name. */
      readonly parameter: string;
      /** So many days from now. */
      readonly days: number;
    };
    /** Where there are some, it needs attention. */
    readonly isBad?: boolean;
  }[];
  /** Of the statistics of the list: on the overview, and on the page of a record that the list refers to. */
  readonly charts?: readonly PortalChart[];
  /** One of the first steps on the overview. It is done when the list has a record. */
  readonly step?: {
    /** Its place among those of all pages. */
    readonly place: number;
    /** What to do: `Create an API key`. */
    readonly title: string;
    /** How, in a sentence. */
    readonly text: string;
    /** Of the list: which records count. Default: all. */
    readonly parameters?: Readonly<Record<string, string>>;
  };
}

export interface PortalChart extends Pick<AdminChart, 'title' | 'kind' | 'unit'> {
  /** The column with the time. */
  readonly time: string;
  /** The parameter of the list that takes the begin of the range. */
  readonly since: string;
  /** The column whose values are the series. */
  readonly by?: string;
  /** Its lines, or the parts of its bars. */
  readonly series: readonly {
    /** In the legend. */
    readonly name: string;
    /** Its colour. */
    readonly tone: AdminTone;
    /** The metric of the statistics. */
    readonly metric: string;
    /** The metric that a mean is weighed by. Default: values are added up. */
    readonly weight?: string;
    /** Of the column `by`. */
    readonly value?: string;
  }[];
}

export interface PortalColumn extends Partial<Omit<AdminColumn, 'name' | 'sortable' | 'sortNote'>> {
  /** The field. */
  readonly name: string;
  /** On the page of a record, and not in the list. */
  readonly recordOnly?: boolean;
  /** The page whose records it has the ids of: the cell shows what people call the record, and leads to it. */
  readonly of?: string;
}

export interface PortalAction {
  readonly label: string;
  /** Asked before it runs. */
  readonly confirm?: string;
  /** What happened then: `The secret was replaced.` */
  readonly done: string;
  readonly tone?: 'neutral' | 'bad';
  /** The page with the record that was made, which is shown then. */
  readonly shows?: string;
}

export interface PortalBorrowedAction extends PortalAction {
  /** The other page. */
  readonly page: string;
  /** Of the field that takes the other record. */
  readonly fieldLabel: string;
  /** `edit`, or the last part of the path of an action: `ping`. */
  readonly operation: string;
  /** What is sent, of the record of this page and the other one. */
  body(item: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): object;
}

/** Where people who have several tenants choose the one that they work in. */
export interface PortalTenants {
  /** The name of the CRUD resource that lists them. */
  readonly resource: string;
  /** The field that people call one by. */
  readonly title: string;
  /** The last part of the path of the operation that chooses one: `choose`. */
  readonly choose: string;
}

/** What the portal shows for a module. */
export interface PortalDeclaration {
  /** In the order of the menu. */
  readonly pages: readonly PortalPage[];
  /** Pages that are not lists. */
  readonly texts?: readonly PortalText[];
  /** The operations behind the choice of a tenant. */
  readonly tenants?: PortalTenants;
}

export interface PortalText extends AdminPageShape {
  /** Shown where this list is. Default: always. */
  readonly beside?: string;
  /** What it shows to this caller. */
  read(context: AdminContext): Promise<readonly AdminSection[]>;
}
