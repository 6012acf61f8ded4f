export { accountsOf, type Accounts } from './accounts.ts';
export { AccountController } from './controller.ts';
export { accountErrors } from './errors.ts';
export {
  accountsGroups,
  addGroupMember,
  createGroup,
  deleteGroup,
  type GroupChange,
  type NewGroup,
  removeGroupMember,
  renameGroup,
} from './groups.ts';
export { activateUser, changePassword, changeStaff, createUser, deactivateUser, deleteUser, type NewUser } from './manage-users.ts';
export type { UserManagement } from './user-management.ts';
export { groupMembers, groups, sessions, users } from './models.ts';
export { accounts } from './module.ts';
export type { AccountsOptions } from './options.ts';
export { logIn, logOut, type LoginAttempt, type NewSession } from './sessions.ts';
export { accountsDirectory } from './user-directory.ts';
