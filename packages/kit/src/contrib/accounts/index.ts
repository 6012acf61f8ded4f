export { accountsOf, type Accounts } from './accounts.ts';
export { AccountController } from './controller.ts';
export { accountErrors } from './errors.ts';
export {
  activateUser,
  changePassword,
  changeStaff,
  createUser,
  deactivateUser,
  type NewUser,
  type UserManagement,
} from './manage-users.ts';
export { sessions, users } from './models.ts';
export { accounts } from './module.ts';
export type { AccountsOptions } from './options.ts';
export { logIn, logOut, type LoginAttempt, type NewSession } from './sessions.ts';
export { accountsDirectory } from './user-directory.ts';
