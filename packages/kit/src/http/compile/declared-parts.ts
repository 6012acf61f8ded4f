import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { ControllerBase } from './controller.ts';

/** What an app declares, as a controller gets it before its routes are compiled. */
export interface DeclaredParts {
  readonly controllers: readonly ControllerBase[];
  /** Policies of rows: those of the app and of its modules. */
  readonly resources: readonly object[];
  /** The modules, each with its own policies. */
  readonly modules: readonly { readonly resources?: readonly object[] | undefined }[];
  /** Whether the app, or a module of it, has a `tenant` resolver. */
  readonly hasTenants: boolean;
  /** The users of the app; null: it has none. */
  readonly users: UserDirectory | null;
}
