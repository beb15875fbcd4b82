BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0017');
CREATE TABLE announcements (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	audience JSON NOT NULL, 
	CONSTRAINT pk_announcements PRIMARY KEY (id)
);
INSERT INTO "announcements" VALUES('news-14fafae491',1.79489567780325675011e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["ada"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-60c9dd31c3',1.79489567795735716817e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["ada", "robots"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-1',1.0,'source','src-1','{}');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-45ecfa7c7f',1,X'7365616C6564');
CREATE TABLE audit_entries (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	user TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	details JSON NOT NULL, 
	token_id TEXT NOT NULL, 
	address TEXT NOT NULL, 
	CONSTRAINT pk_audit_entries PRIMARY KEY (id)
);
INSERT INTO "audit_entries" VALUES('aud-d65716d156',1.79489567111488676075e+09,'','token.add','root','{"name": "first login"}','','');
INSERT INTO "audit_entries" VALUES('aud-cb6d69a3fc',1.79489567753470230103e+09,'root','token.add','root','{"id": "ce2e2847f8", "name": "", "scopes": ["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"], "expires_at": 1802671677.5341704}','1505ecdbf3','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-6657c56736',1.79489567757146430016e+09,'root','user.add','ada','{"is_admin": false}','ce2e2847f8','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-eafc409f9c',1.79489567758532500268e+09,'ada','team.add','robots','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-b379e53a78',1.79489567782540893558e+09,'ada','environment.push','ada/sums@0.1.0','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-9fc01fa010',1.79489567792595243458e+09,'ada','role.set','ada/sums','{"holder": "robots", "role": "read"}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-697732e8f7',1.79489567808265256879e+09,'ada','secret.add','ada SHARED_KEY','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-6202d75ea6',1.79489567816439437872e+09,'ada','secret.link','ada/sums SHARED_KEY','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-71ef6c05e8',1.79489567820861601827e+09,'ada','secret.add','ada/sums SUMS_KEY','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-919d3c2411',1.79489567823971152304e+09,'ada','variable.add','ada/sums REGION','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-5e1efa4401',1.79489567827075266839e+09,'root','price.set','parrot','{"input_usd_per_million": 1.0, "output_usd_per_million": 2.0, "cached_usd_per_million": null}','ce2e2847f8','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-6ebfe7d54a',1.79489567832679557798e+09,'root','balance.grant','ada','{"amount_usd": 5.0}','ce2e2847f8','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-a8ee306ed6',1.79489567853453397747e+09,'ada','run.upload','run-6f7e42277f','{}','4f857a05cd','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-6787a23f9d',1.79489567899983930594e+09,'ada','run.start','run-45ecfa7c7f','{"environment": "ada/sums", "model": "parrot"}','4f857a05cd','127.0.0.1');
CREATE TABLE browser_sessions (
	id TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_browser_sessions_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "browser_sessions" VALUES('session-1',X'68617368','1505ecdbf3',1.0,2.0);
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('9ac588fde4e010cc907d',1.79489567838532900812e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('4f857a05cd','robots',X'0185F1FF2BDEE21113FC9E3A35C995B0F5FD0333CBDAF752609D0914A8C3E3CAE7BAC4512383E5652BE614D4AACCDF6762D82C0F409653072E376BFF37F76130E8AEC9C794E4E08616F47EC27C3984CE58ADA4C311C108E742E2F2429148CE633632CC3E7B64A0589F4456573F8E78F99AFF71A334100273AE0EF49CB451CC862AB48FA9',1.79489567758579969406e+09);
CREATE TABLE dataset_uploads (
	id TEXT NOT NULL, 
	person TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	format TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	visibility TEXT, 
	description TEXT, 
	created_at DOUBLE NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_uploads PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_uploads_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "dataset_uploads" VALUES('upload-1','ada','ada','more','jsonl',9,NULL,NULL,1.0,1.0);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-8423b9106c','ada','grant',5000000,NULL,'grant:29445a6d3cd9b6fb827f','welcome',1.79489567832603573796e+09);
INSERT INTO "entries" VALUES('ent-3dbfdb62e1','ada','charge',-3,NULL,'calls:9ac588fde4e010cc907d','',1.79489567840741586681e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-8ea7fa3e4a','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79489567777371764184e+09,1.79489567779130697244e+09,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-6f7e42277f',1,X'7B22736571223A312C226174223A313739343839353637382E343530393734372C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-6f7e42277f',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-6f7e42277f',3,X'7B22736571223A332C226174223A313739343839353637382E3639323634362C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-6f7e42277f',4,X'7B22736571223A342C226174223A313739343839353637382E3639323634362C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-6f7e42277f',5,X'7B22736571223A352C226174223A313739343839353637382E3639323634362C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-6f7e42277f',6,X'7B22736571223A362C226174223A313739343839353637382E373836333135322C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-45ecfa7c7f',1,X'7B22736571223A312C226174223A313739343839353637382E393737333736372C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-45ecfa7c7f',2,X'7B22736571223A322C226174223A313739343839353637392E3030383435392C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-45ecfa7c7f','ada',1000000);
CREATE TABLE leases (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	until DOUBLE NOT NULL, 
	is_wanted BOOLEAN NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('sweep','server-1',1,1.0,0);
CREATE TABLE login_codes (
	code_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_login_codes PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_codes_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "login_codes" VALUES(X'38104447076FE35DF6F98D458EC8F37F3C5ADCB06BE29949F28414A375376694','282fbdf6b7',1.79489567113346576692e+09,1.79489927113346576688e+09,NULL);
INSERT INTO "login_codes" VALUES(X'68617368','1505ecdbf3',1.0,2.0,NULL);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-45ecfa7c7f','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-45ecfa7c7f',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-8ea7fa3e4a','robots','read');
CREATE TABLE rollout_entries (
	run_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	entry BLOB NOT NULL, 
	CONSTRAINT pk_rollout_entries PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_rollout_entries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollout_entries" VALUES('run-6f7e42277f',1,X'92DC00140100A673636F726564CB3FF0000000000000CB0000000000000000CB000000000000000000000001C081A57269676874CB3FF0000000000000A0A0A0A0A0A0A0A0969400000000C0C0808080');
INSERT INTO "rollout_entries" VALUES('run-6f7e42277f',2,X'92DC0014A374776F00AB6D6F64656C5F6572726F72C0CB0000000000000000CB000000000000000000000001C080AA4D6F64656C4572726F72A0A0A0A0A0A0A096940000000084A56572726F72AA4D6F64656C4572726F72A76D657373616765A0A57068617365A0A86C6F636174696F6EA0C0808080');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-6f7e42277f','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7');
INSERT INTO "rollouts" VALUES('run-6f7e42277f','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F');
CREATE TABLE run_comments (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	task_key TEXT, 
	number INTEGER, 
	step INTEGER, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	edited_at DOUBLE, 
	deleted_at DOUBLE, 
	deleted_by TEXT, 
	CONSTRAINT pk_run_comments PRIMARY KEY (id), 
	CONSTRAINT fk_run_comments_author FOREIGN KEY(author) REFERENCES users (name), 
	CONSTRAINT fk_run_comments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_comments" VALUES('comment-1','run-45ecfa7c7f','0000000000000000',0,NULL,'ada','why?',1.0,NULL,NULL,NULL);
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-45ecfa7c7f','content-1');
CREATE TABLE run_labels (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	person TEXT NOT NULL, 
	score DOUBLE, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_labels PRIMARY KEY (run_id, task, number, person), 
	CONSTRAINT fk_run_labels_person FOREIGN KEY(person) REFERENCES users (name), 
	CONSTRAINT fk_run_labels_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_labels" VALUES('run-45ecfa7c7f','0',0,'ada',1.0,'right',1.0);
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-45ecfa7c7f',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_origins (
	run_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	entrypoint TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	dataset JSON NOT NULL, 
	config_hash TEXT NOT NULL, 
	recipe JSON NOT NULL, 
	CONSTRAINT pk_run_origins PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_origins_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_origins" VALUES('run-45ecfa7c7f','ada/agents','/srv/agents','math','main.py','c0ffee','main','{"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "selected_rows": 4}','abc','{}');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-45ecfa7c7f','OWN_KEY',X'01BB2CCAB59C48C144CE399A49CC21485D006C3989F4BA84D4F01138CEC1603D4B3756');
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, score JSON, suite TEXT, tags JSON, note TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '0' NOT NULL, edited_at DOUBLE, editors JSON, rescored_from TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-6f7e42277f','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}, "reused_replies": {}, "saved_usd": null, "rewards": null}',1.79489567845097470286e+09,1.79489567845097470286e+09,1.79489567878631520268e+09,1428,69,'private','{"mean": 1.0, "interval": null, "tasks": 1, "coverage": null}',NULL,NULL,'',0,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('run-45ecfa7c7f','hosted','nightly','ada',NULL,'env-8ea7fa3e4a','ver-84d3ad15e4','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79489567897737669951e+09,NULL,NULL,0,0,'private',NULL,NULL,NULL,'',0,NULL,NULL,NULL);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'011F00D79319E6AD971AB91A417FBFB51E6F41B35E470131E1249058440A0F294CD22D8D',1.7948956709994928837e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-8ea7fa3e4a','sec-cb70d10180');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-cb70d10180','ada',NULL,'SHARED_KEY',X'0159AD4CD6FF1399A24B6659DD455CEDBE996A9FBA201F2C42DDB00E861604B3B45D','',1.7948956780805821418e+09,1.7948956780805821418e+09);
INSERT INTO "secrets" VALUES('sec-185a926132',NULL,'env-8ea7fa3e4a','SUMS_KEY',X'012846FEAB4620076D7946D75C8049342CDDA3A4A2E0B596E11345C8A857D8E14A11759CD3','of the sums',1.7948956782077715397e+09,1.7948956782077715397e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('oldest_release','0017');
INSERT INTO "server_settings" VALUES('run_policy','readers');
CREATE TABLE servers (
	id TEXT NOT NULL, 
	server TEXT NOT NULL, 
	url TEXT NOT NULL, 
	version TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	CONSTRAINT pk_servers PRIMARY KEY (id)
);
INSERT INTO "servers" VALUES('process-1','server-1','http://a','0.1.0',1.0,2.0);
CREATE TABLE source_builds (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	files JSON NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_source_builds PRIMARY KEY (source_id, commit_sha, rollout), 
	CONSTRAINT fk_source_builds_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_builds_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "source_builds" VALUES('src-1','c0ffee','math','ver-84d3ad15e4','["main.py"]','Ada','Begin');
CREATE TABLE source_commits (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE NOT NULL, 
	rollouts JSON NOT NULL, 
	recipes JSON NOT NULL, 
	fetched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_source_commits PRIMARY KEY (source_id, commit_sha), 
	CONSTRAINT fk_source_commits_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_commits" VALUES('src-1','c0ffee','Ada','Begin',1.0,'["math"]','[]',1.0);
CREATE TABLE source_syncs (
	id TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	status TEXT NOT NULL, 
	log JSON NOT NULL, 
	commit_sha TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	ended_at DOUBLE, server TEXT, 
	CONSTRAINT pk_source_syncs PRIMARY KEY (id), 
	CONSTRAINT fk_source_syncs_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_syncs" VALUES('sync-1','src-1','ada','main','done','[]','c0ffee',1.0,2.0,NULL);
CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	has_credentials BOOLEAN NOT NULL, 
	known_hosts TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE, 
	rollouts JSON NOT NULL, 
	problem TEXT NOT NULL, 
	synced_at DOUBLE, 
	created_at DOUBLE NOT NULL, branches JSON DEFAULT '[]' NOT NULL, history JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT fk_sources_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_sources_owner_name UNIQUE (owner, name)
);
INSERT INTO "sources" VALUES('src-1','ada','agents','file:///srv/agents','/srv/agents',X'7365616C6564',0,'','main','c0ffee','Ada','Begin',NULL,'["math"]','',NULL,1.0,'[]','[]');
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-03c93ba424','robots',1.7948956775837628841e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('1505ecdbf3','first',X'B5795C81CE52729B94E070739241173CC3515316938B20FAB031C58CE6D59A65','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489567109964227682e+09,NULL,1.79489567744922351834e+09,1.79489567753224706645e+09,NULL);
INSERT INTO "tokens" VALUES('282fbdf6b7','user',X'EA5A6CCCE4D5FE64ECA475B40672E98EF873170854C10964EEE0D68466B7678A','root',NULL,NULL,'dashboard','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489567113377857204e+09,1.80267167113346576693e+09,NULL,NULL,NULL);
INSERT INTO "tokens" VALUES('ce2e2847f8','user',X'03B86607BC3AA8463E20CEC71ED783E740706726D41CBF123808E649121BBC7F','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79489567753420615203e+09,1.80267167753417038925e+09,1.79489567754842472072e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('4f857a05cd','user',X'3193F9BF7CD6A7015F209C31BE4133ABC4E5A539801B7E58726ECE7077471D13','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79489567757050013548e+09,1.80267167757016038894e+09,1.79489567757731342313e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-ffe0477a96','root',1,1.79489567108607339859e+09,NULL);
INSERT INTO "users" VALUES('usr-e70340e034','ada',0,1.79489567757016038902e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-61abba5a3a','env-8ea7fa3e4a','REGION','north',1.79489567823143529893e+09,1.79489567823143529893e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-84d3ad15e4',0,'sum',X'7B7D');
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, check_details BLOB, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-84d3ad15e4','env-8ea7fa3e4a','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','81703a6a4e62a327b1006ef9ea4f8f97632c4d529a58b5f349839f78506a48f0',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79489567777844381338e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
CREATE INDEX ix_run_origins_repository ON run_origins (repository);
CREATE INDEX ix_run_origins_config_hash ON run_origins (config_hash);
CREATE INDEX ix_browser_sessions_token_id ON browser_sessions (token_id);
CREATE INDEX ix_login_codes_token_id ON login_codes (token_id);
CREATE INDEX ix_runs_suite ON runs (suite);
CREATE INDEX ix_run_labels_person ON run_labels (person);
CREATE INDEX ix_runs_edited_at ON runs (edited_at);
CREATE INDEX ix_run_comments_run_id ON run_comments (run_id, created_at, id);
CREATE INDEX ix_run_comments_author ON run_comments (author);
CREATE INDEX ix_audit_entries_at ON audit_entries (at, id);
CREATE INDEX ix_audit_entries_user ON audit_entries (user, at);
CREATE INDEX ix_dataset_uploads_person ON dataset_uploads (person);
CREATE INDEX ix_source_syncs_source_id ON source_syncs (source_id, started_at);
CREATE INDEX ix_runs_rescored_from ON runs (rescored_from);
CREATE INDEX ix_announcements_at ON announcements (at);
COMMIT;
