/** The caller as the toolkit knows it. Apps that bring their own users map them to this shape. */
export interface User {
  readonly id: string;
  readonly username: string;
  readonly email: string | null;
  readonly is_active: boolean;
  readonly is_staff: boolean;
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
}
