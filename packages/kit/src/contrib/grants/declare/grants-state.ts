import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Registry } from '../../../app/declare/registry.ts';
import type { GroupDirectory } from '../../../auth/people/group-directory.ts';
import type { User } from '../../../auth/people/principal.ts';
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Model } from '../../../db/declare/model.ts';
import type { Rule } from '../../../permissions/permission.ts';
import { didYouMean } from '../../../options/did-you-mean.ts';
import { actionsOfModel, modelOfActions, type ObjectActions } from './object-actions.ts';

/** The module at run time: what it decides by, and what it uses of the app. */
export interface GrantsState {
  readonly clock: Clock;
  readonly registry: Registry;
  /** The app's named rules, for `owner: { unless: hasRule('name') }`. */
  readonly rules: Readonly<Record<string, Rule>>;
  readonly users: UserDirectory | null;
  readonly groups: GroupDirectory | null;
  readonly isInTenant: ((db: Db, user: User, tenantKey: string) => boolean | Promise<boolean>) | undefined;
  /** By the name of the table. */
  readonly objects: ReadonlyMap<string, ObjectActions>;
}

export const grantsState = moduleState<GrantsState>({
  name: 'Object grants',
  setUp: 'add objectGrants({ objects }) to the modules of createApp',
});

/** An object: the declaration of its actions, its model or the name of its table, and the key of the row. */
export interface ObjectRef<A extends string = string, S extends string = string> {
  /** What `objectActions()` returned, the model, or the name of its table. */
  readonly type: ObjectActions<A, S> | Model | string;
  /** The primary key of the row. */
  readonly id: string | number | bigint;
}

/** The declaration of a model. A model without one is a mistake of the program. */
export function declarationOf(db: Db, source: ObjectActions | Model | string): ObjectActions {
  const type = typeof source === 'string' ? source : modelOfActions(source);
  const { objects } = grantsState.of(db);
  const name = typeof type === 'string' ? type : type.name;
  const found = objects.get(name);
  if (found !== undefined && (typeof type === 'string' || found.model === type)) return found;
  if (typeof type !== 'string' && actionsOfModel(type) !== undefined)
    throw new Error(`The actions of "${name}" are not part of this app: give them to objectGrants({ objects: […] }).`);
  throw new Error(
    `The model "${name}" has no actions: declare objectActions(${name}, …) and give it to objectGrants().${didYouMean(name, [...objects.keys()])}`,
  );
}
