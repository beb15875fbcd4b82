/** The words of the login page, and of a session that ended while somebody worked. */
export const text = {
  title: "Your session has ended",
  kept: (user: string) =>
    `You were logged in as ${user}. This page and what you typed are still here: log in to go on.`,
  elsewhere: "I have logged in in another tab",
  notYet: "You are not logged in yet.",
  ended: "Your session has ended. Log in again, and you are back where you were.",
  codeFailed: (server: string) =>
    `This link no longer works: it can be used once, and only for a few minutes. Get another one with \`proctor dashboard ${server}\`.`,
  unreachable: "The server does not answer. Your input stays here; try again in a moment.",
  link: "One-time link",
  linkHint: "Where you are logged in on the command line, this prints a link that logs this browser in:",
  help: "Neither works?",
  helps: [
    {
      title: "You have never logged in",
      text: "Ask an admin of this server for an account: they create it with `proctor user add NAME` and send you a token.",
    },
    {
      title: "Your token has expired or was revoked",
      text: "Make another one where you are still logged in, with `proctor token create`, or ask an admin.",
    },
    {
      title: "You are the admin, and every token is lost",
      text: "On the server’s own machine, make a token for one login:",
    },
  ],
  adminCommand: (server: string) =>
    `proctor server admin-token --data DATA-FOLDER\nproctor login ${server} --token-file DATA-FOLDER/admin-token`,
};
