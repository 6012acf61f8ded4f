export { accountsOf, type Accounts } from './users/accounts.ts';
export { AccountController } from './serve/controller.ts';
export {
  addGroupMember,
  createGroup,
  deleteGroup,
  type GroupChange,
  type NewGroup,
  removeGroupMember,
  renameGroup,
} from './users/groups.ts';
export { folderMail } from './mail/folder-mail.ts';
export { inviteUser } from './mail/invite-user.ts';
export type { MailMessage, MailPort } from '../../app/declare/mail-port.ts';
export type { AccountMail, MailOptions } from './mail/mail.ts';
export { activateUser, changePassword, changeStaff, createUser, deactivateUser, deleteUser, type NewUser } from './users/manage-users.ts';
export type { UserManagement } from './users/user-management.ts';
export { users } from './models.ts';
export { accounts } from './module.ts';
export { openSession, type LoginExchange } from './login/open-session.ts';
export type { AccountsOptions } from './options.ts';
export { resetSecondFactor } from './factors/second-factor.ts';
export { logIn, logOut, type LoginAttempt, type NewSession } from './sessions/sessions.ts';
