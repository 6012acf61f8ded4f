/**
 * Of the ids of users, tenants and records that modules store as text, in characters. An app brings its own: the subject of an identity provider
 * may have 255 (OpenID Connect).
 */
export const IDENTITY_LENGTH_MAX = 255;
