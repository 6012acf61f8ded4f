/** The caller as the toolkit knows it. Apps that bring their own users map them to this shape. */
export interface User {
  /** Never changes; owners of rows are compared with it. */
  readonly id: string;
  /** Unique; may change. */
  readonly username: string;
  /** Null when no address is known. */
  readonly email: string | null;
  /** False: every credential of the user is rejected. */
  readonly is_active: boolean;
  /** May use the admin site. */
  readonly is_staff: boolean;
  /** Not limited by grants and roles. */
  readonly is_superuser: boolean;
}

/** Who made the request, and through which credential. */
export interface Principal {
  readonly user: User;
  /** The authenticator's kind of credential: `session`, `api_key`, … */
  readonly scheme: string;
  /** `null`: this kind of credential carries no scopes. An empty list carries scopes and has none. */
  readonly scopes: readonly string[] | null;
  /** The stored credential, e.g. the API key's id. */
  readonly credentialId?: string | undefined;
  /** Verified claims of an access token. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** The tenant that the credential is for, for `createApp({ tenant: ({ principal }) => principal?.tenant ?? null })`. */
  readonly tenant?: string | null | undefined;
  /** True: the person has chosen `tenant`, and a request may name another one. Otherwise the credential is for this tenant alone. */
  readonly isTenantDefault?: boolean | undefined;
  /**
   * The id of the only tenant that the credential acts in; an empty string: in none. Unlike `tenant`, it binds whatever `createApp({ tenant })` finds, and
   * the membership is proved with every request. Undefined or null: not bound.
   */
  readonly boundTenant?: string | null | undefined;
  /** False where the person has to prove to be there before sensitive changes; undefined for credentials of programs. */
  readonly recentLogin?: boolean | undefined;
  /** How many requests the credential may make in a calendar period: `10000/month`. requests() counts them. Undefined or null: no quota of its own. */
  readonly quota?: string | null | undefined;
  /** The id of the staff member who acts as the user. Audit entries record it, and it excludes creating API keys. */
  readonly impersonatedBy?: string | undefined;
  /** True: a member of staff looks as the user. Everything but reads is rejected, and no file, one-time value or link leaves. */
  readonly isViewing?: boolean | undefined;
  /** `missing`: the user's staff rights are withheld until a second factor is proved. Undefined: not known, or not needed. */
  readonly secondFactor?: 'proved' | 'missing' | undefined;
}
