import type { Db } from '../../db/engine/db.ts';

/** Users under one name, as modules see them. */
export interface Group {
  readonly id: string;
  readonly name: string;
  /** Null: of no tenant; it counts in all of them. */
  readonly tenantKey: string | null;
}

/**
 * Who is in which group. The accounts module provides one; an app that keeps memberships elsewhere brings its own. Answers are asked for with
 * every request that needs them, and never kept longer.
 */
export interface GroupDirectory {
  /** The ids of the groups that count for a user in a tenant: groups of no tenant and groups of this one. Null: only groups of no tenant. */
  groupsOf(db: Db, userId: string, tenantKey: string | null): Promise<readonly string[]>;
  /** The same for many users, in their order, with one statement: live lists ask it for all their callers. Default: `groupsOf` for each. */
  groupsOfMany?(
    db: Db,
    asked: readonly { readonly userId: string; readonly tenantKey: string | null }[],
  ): Promise<readonly (readonly string[])[]>;
  /** The ids of all groups of a user, of every tenant: for pages about the user, never for a decision. Default: `groupsOf` of no tenant. */
  allGroupsOf?(db: Db, userId: string): Promise<readonly string[]>;
  /** Whether an active user is in the group: grants to a group without one do not keep an object shared. Default: yes. */
  hasActiveMember?(db: Db, id: string): Promise<boolean>;
  /** The group with this id, or null. */
  findById(db: Db, id: string): Promise<Group | null>;
  /** By its name among the groups of a tenant and those without a tenant. */
  findByName(db: Db, name: string, tenantKey: string | null): Promise<Group | null>;
}
