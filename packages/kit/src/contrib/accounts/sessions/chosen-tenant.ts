import type { SessionTenants } from '../../../auth/people/session-tenants.ts';
import { setChosenTenant } from '../users/store.ts';

/** Browser sessions of this module, by the id of their row. */
export const accountsSessionTenants: SessionTenants = {
  choose: async (db, { scheme, credentialId }, tenant) =>
    scheme === 'session' && credentialId !== undefined && setChosenTenant(db, credentialId, tenant),
};
