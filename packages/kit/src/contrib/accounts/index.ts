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
export { folderMail } from './folder-mail.ts';
export { inviteUser } from './invite-user.ts';
export type { AccountMail, MailMessage, MailOptions, MailPort } from './mail.ts';
export { activateUser, changePassword, changeStaff, createUser, deactivateUser, deleteUser, type NewUser } from './manage-users.ts';
export type { UserManagement } from './user-management.ts';
export { groupMembers, groups, sessions, users } from './models.ts';
export { accounts } from './module.ts';
export { openSession, type LoginExchange } from './open-session.ts';
export type { AccountsOptions } from './options.ts';
export { resetSecondFactor } from './second-factor.ts';
export { logIn, logOut, type LoginAttempt, type NewSession } from './sessions.ts';
export { accountsDirectory } from './user-directory.ts';
