/** The owner of what belongs to a tenant and to no person. No user has such an id: it is compared with theirs, and never looked up. */
export const tenantOwner = (tenant: string): string => `tenant:${tenant}`;
