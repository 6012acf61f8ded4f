/** A host and its port as RFC 3986 writes them, also an IPv6 address with its zone. The source of a regular expression that ignores case. */
export const HOST_AND_PORT: string = String.raw`(?:[\w.~!$&'()*+,;=%-]+|\[[\da-f:.]+(?:%[\w.~%-]+)?\])(?::\d*)?`;
