import type { Db } from '../../db/engine/db.ts';
import type { AdminColumn, AdminResourceShape, AdminState } from './shapes.ts';

/**
 * A page of the developers' portal: words for the operations that the app has mounted for a resource. What may be seen and done is what these operations
 * allow; where none are mounted, there is no page.
 */
export interface PortalPage extends Pick<AdminResourceShape, 'name' | 'label' | 'singular' | 'group' | 'description' | 'icon' | 'removal'> {
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
  }[];
  /** By field and value: what it means. */
  readonly states?: Readonly<Record<string, Readonly<Record<string, AdminState>>>>;
  /** By the last part of their path: `rotate`. */
  readonly actions?: Readonly<Record<string, PortalAction>>;
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
    /** Where there are some, it needs attention. */
    readonly isBad?: boolean;
  }[];
}

export interface PortalColumn extends Partial<Omit<AdminColumn, 'name' | 'sortable' | 'sortNote'>> {
  /** The field. */
  readonly name: string;
}

export interface PortalAction {
  readonly label: string;
  /** Asked before it runs. */
  readonly confirm?: string;
  /** What happened then: `The secret was replaced.` */
  readonly done: string;
  readonly tone?: 'neutral' | 'bad';
}

/** What the portal shows for a module. */
export interface PortalDeclaration {
  /** In the order of the menu. */
  readonly pages: readonly PortalPage[];
}
